from __future__ import annotations

import pytest

from duologue.engines.models.moshi_lm.config import tiny
from duologue.engines.models.moshi_lm.prompt import (
    VoiceEnd,
    moshi_prompt,
    personaplex_prompt,
    wrapped,
)
from duologue.engines.models.moshi_lm.token_grid import Frame

pytestmark = pytest.mark.torch

CONFIG = tiny(codebooks=2, audio_card=50, silence=(1, 2), sine=(3, 4))
QUIET = (3, 1, 2, 3, 4)
"""Nothing said, a tone heard."""


def test_moshi_begins_with_the_row_before_everything() -> None:
    prompt = moshi_prompt(CONFIG)
    assert prompt.rows == [(100, 50, 50, 50, 50)]
    assert prompt.last == Frame(100, (50, 50), (50, 50))


def test_a_persona_stands_between_two_silences() -> None:
    prompt = personaplex_prompt(CONFIG, [7, 8], silent_frames=3)
    assert (
        prompt.rows
        == [
            (100, 50, 50, 50, 50),  # the first frame is never seen
            (3, 1, 50, 3, 50),
            QUIET,
            (7, *QUIET[1:]),
            (8, *QUIET[1:]),
            QUIET,
            QUIET,
            QUIET,
        ]
    )
    assert prompt.last == Frame(3, (1, 2), (3, 4))


def test_without_a_persona_there_is_only_silence() -> None:
    assert len(personaplex_prompt(CONFIG, []).rows) == 12


def test_a_voice_comes_first_and_its_last_codes_are_heard_out() -> None:
    voice = VoiceEnd((3, 10, 11, 3, 4), Frame(3, (10, 21), (3, 4)))
    prompt = personaplex_prompt(CONFIG, [7], voice, silent_frames=2)
    assert prompt.rows == [
        (3, 10, 11, 3, 4),
        (3, 1, 21, 3, 4),
        QUIET,
        (7, *QUIET[1:]),
        QUIET,
        QUIET,
    ]


def test_a_persona_is_wrapped_once() -> None:
    assert wrapped("  You are kind. ") == "<system> You are kind. <system>"
    assert wrapped("<system> You are kind. <system>") == "<system> You are kind. <system>"
