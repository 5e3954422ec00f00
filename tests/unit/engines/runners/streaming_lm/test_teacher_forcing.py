"""What is expected at forced positions is what a live stream chose there."""

from __future__ import annotations

import pytest
import torch

from duologue.engines.models.moshi_lm.sampling import GREEDY
from duologue.engines.models.moshi_lm.token_grid import Frame, rows
from duologue.engines.runners.streaming_lm.teacher_forcing import Expected, Read, expected
from tests.unit.engines.runners.streaming_lm.tiny_network import (
    CONFIG,
    WINDOW,
    engine,
    network,
    opening,
    persona,
    speech,
)

pytestmark = pytest.mark.torch

FRAMES = 2 * WINDOW


def spoken() -> tuple[list[Read], int]:
    """Hold a greedy call, and return its rows and the first position that was spoken."""
    live = engine()
    how = opening(prompt=persona(9), taste=GREEDY)
    slot = live.open(how)
    while not live.is_live(slot):
        live.prefill()
    said = [live.step([slot], [pcm])[0] for pcm in speech(FRAMES, seed=3)]
    frames = [Frame(each.text, each.said, each.heard) for each in said]
    made = rows(CONFIG, frames, how.prompt.last)
    return [*how.prompt.rows, *made], how.positions


def test_a_greedy_call_says_what_is_expected_most_also_past_its_window() -> None:
    written, first = spoken()
    found = expected(network(), torch.float32, written, written, first)
    following = torch.tensor(written[first + 1 :])
    assert torch.equal(found.text.argmax(-1), following[:, 0])
    assert torch.equal(found.codes.argmax(-1), following[:, 1 : 1 + CONFIG.codebooks])


def test_nothing_is_told_before_the_first_position_and_all_after_it() -> None:
    written, _ = spoken()
    told: list[tuple[int, int]] = []
    found = expected(
        network(), torch.float32, written, written, len(written) - 4, lambda *at: told.append(at)
    )
    assert isinstance(found, Expected)
    assert found.text.shape == (3, CONFIG.text_card)
    assert found.codes.shape == (3, CONFIG.codebooks, CONFIG.audio_card)
    assert told[-1] == (len(written) - 1, len(written) - 1)
    assert torch.allclose(found.text.exp().sum(-1), torch.ones(3), atol=1e-5)
