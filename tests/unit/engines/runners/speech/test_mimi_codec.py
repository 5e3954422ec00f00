from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from duologue.engines.runners.speech.csm import CsmSettings, load_codec
from tests.fakes.tiny_speech.csm import BOOKS, CODES

pytestmark = pytest.mark.speech

FRAMES = 12
CODES_GIVEN = np.random.default_rng(1).integers(0, CODES, (3, FRAMES, BOOKS)).astype(np.uint16)


def test_streams_of_any_age_and_step_are_those_alone(tiny_speech: Callable[[str], Path]) -> None:
    codec = load_codec(CsmSettings(folder=str(tiny_speech("csm")), slots=3))
    alone = []
    for codes in CODES_GIVEN:
        stream = codec.begin()
        steps = [codec.decode([stream], [codes[at : at + 4]])[0] for at in range(0, FRAMES, 4)]
        alone.append(np.concatenate(steps))
        codec.end(stream)
    assert [len(each) for each in alone] == [codec.length(FRAMES)] * 3

    streams = [codec.begin() for _ in CODES_GIVEN]
    parts: list[list[np.ndarray]] = [[], [], []]
    done = [0, 0, 0]
    for sizes in ((2, 1, 2), (3, 3, 1), (3, 2, 3), (4, 6, 6)):
        given = [
            codes[at : at + size] for codes, at, size in zip(CODES_GIVEN, done, sizes, strict=True)
        ]
        for row, made in enumerate(codec.decode(streams, given)):
            parts[row].append(made)
        done = [at + size for at, size in zip(done, sizes, strict=True)]
    assert done == [FRAMES] * 3
    for row in range(3):
        np.testing.assert_allclose(np.concatenate(parts[row]), alone[row], atol=2e-5)


def test_a_slot_can_be_had_again(tiny_speech: Callable[[str], Path]) -> None:
    codec = load_codec(CsmSettings(folder=str(tiny_speech("csm")), slots=1))
    for _ in range(3):
        codec.end(codec.begin())
