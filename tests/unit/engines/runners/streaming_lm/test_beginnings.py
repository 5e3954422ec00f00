"""Personas and voices, made into positions. What is refused stands among the runner's tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from duologue.core.errors import EngineError
from duologue.engines.models.moshi_lm.random_checkpoint import save_random_voice, train_vocabulary
from duologue.engines.models.moshi_lm.tokenizer import TextTokenizer
from duologue.engines.payloads import NOT_SAID, LockstepStart
from duologue.engines.runners.streaming_lm.beginnings import Beginnings
from tests.unit.engines.runners.streaming_lm import tiny_network

pytestmark = pytest.mark.torch

CONFIG = replace(tiny_network.CONFIG, window=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("voices")
    sentences = [f"the quick brown fox {n} jumps over lazy dogs" for n in range(40)]
    train_vocabulary(made / "text.model", CONFIG, sentences)
    save_random_voice(made / "low.pt", CONFIG, frames=4, seed=1)
    return made


def beginnings(folder: Path, *, told: bool = True, voice: str = "") -> Beginnings:
    tokenizer = TextTokenizer(folder / "text.model", CONFIG)
    cpu = torch.device("cpu")
    return Beginnings(CONFIG, tokenizer, folder if told else None, voice, cpu, torch.float32)


def test_a_model_that_cannot_be_told_anything_begins_with_one_position(folder: Path) -> None:
    opening = beginnings(folder, told=False).opening(LockstepStart(instructions="fox", seed=5))
    assert (opening.positions, opening.seed, opening.name) == (1, 5, "")


def test_a_voice_comes_before_a_persona(folder: Path) -> None:
    one = beginnings(folder, voice="low")
    plain = one.opening(LockstepStart(seed=1))
    assert plain.voice is not None
    assert plain.voice.shape == (3, CONFIG.dimension)
    told = one.opening(LockstepStart(instructions="fox", seed=1))
    assert told.positions > plain.positions
    assert told.name != plain.name


def test_a_pinned_persona_may_take_half_of_the_window(folder: Path) -> None:
    one = beginnings(folder)
    assert one.opening(LockstepStart(pins_persona=True)).pinned
    with pytest.raises(EngineError, match="they may take 30"):
        one.opening(LockstepStart(instructions="fox fox", pins_persona=True))


def test_each_call_draws_otherwise_unless_told_how(folder: Path) -> None:
    one = beginnings(folder)
    assert one.opening(LockstepStart()).seed != one.opening(LockstepStart()).seed


def test_a_frame_that_was_taken_back_was_silent(folder: Path) -> None:
    one = beginnings(folder)
    start = LockstepStart(seed=1)
    opening = one.opening(start)
    said = (7, *range(8)), (NOT_SAID,) * 9
    numbers = [n for part in said for n in (*part, *range(10, 18))]
    log = b"".join(n.to_bytes(2, "little") for n in numbers)
    read = one.log(LockstepStart(log=log), opening)
    assert read is not None
    kept = read.frame(opening.positions), read.frame(opening.positions + 1)
    assert (kept[0].text, kept[0].said) == (7, tuple(range(8)))
    assert (kept[1].text, kept[1].said) == (CONFIG.text_padding, CONFIG.silence)
    assert kept[1].heard == tuple(range(10, 18))
    assert one.log(start, opening) is None
