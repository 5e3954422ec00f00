from __future__ import annotations

import numpy as np
import pytest
from call import SAMPLE_RATE_HZ, Answer
from speech import pcm16


def silence(seconds: float) -> bytes:
    return bytes(2 * round(seconds * SAMPLE_RATE_HZ))


def noise(seconds: float) -> bytes:
    return pcm16(np.full(round(seconds * SAMPLE_RATE_HZ), 0.3, np.float32))


def test_an_answer_becomes_audible_after_the_silence_that_it_starts_with() -> None:
    answer = Answer("r", 0.0, [(10.0, silence(0.1)), (10.01, silence(0.1) + noise(0.1))])
    assert answer.first_audible_s() == pytest.approx(10.2)


def test_a_late_delta_is_heard_when_it_arrives() -> None:
    answer = Answer("r", 0.0, [(10.0, silence(0.1)), (11.0, noise(0.1))])
    assert answer.first_audible_s() == pytest.approx(11.0)


def test_a_silent_answer_is_never_audible() -> None:
    assert Answer("r", 0.0, [(10.0, silence(1.0))]).first_audible_s() is None


def test_playback_ends_when_all_audio_was_played_in_order() -> None:
    answer = Answer("r", 0.0, [(10.0, noise(1.0)), (10.1, noise(1.0)), (13.0, noise(0.5))])
    assert answer.playback_end_s() == pytest.approx(13.5)
    assert answer.audio_s == pytest.approx(2.5)
