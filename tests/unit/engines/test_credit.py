from __future__ import annotations

import pytest

from duologue.engines.credit import cost
from duologue.engines.media_payloads import StepsDone
from duologue.engines.payloads import (
    AudioChunk,
    CodeFrames,
    Payload,
    SpeechMark,
    TextDelta,
    TokenUsage,
    VoiceActivity,
)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (AudioChunk(bytes(1280), 16_000), 40),
        (AudioChunk(bytes(4800), 24_000), 100),
        (AudioChunk(b"", 24_000), 0),
        (TextDelta("a whole sentence counts as one"), 1),
        (VoiceActivity(0.5, 640), 1),
        (SpeechMark(10, 2400), 0),
        (CodeFrames(bytes(48), 8, text_end=3), 3),
        (CodeFrames(b"", 8, text_end=3), 0),
        (TokenUsage(10, 20), 0),
        (StepsDone(1, 2), 0),
    ],
)
def test_audio_costs_its_length_and_all_else_one_unless_it_only_describes(
    payload: Payload, expected: int
) -> None:
    assert cost(payload) == expected
