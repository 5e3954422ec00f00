"""Limits and manners of sessions."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.sessions.settings import (
    ListeningSettings,
    SessionSettings,
    undetected,
    without_missing,
)
from duologue.sessions.speaking.output_buffer import EVENT_BYTES


@pytest.mark.parametrize("name", ["max_sessions", "max_items", "output_events", "stall_limit_s"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="greater than 0"):
        SessionSettings.model_validate({name: 0})


def test_the_longest_turn_fits_into_the_buffer_and_the_longest_wait_into_its_bytes() -> None:
    settings = SessionSettings()
    assert settings.listening.max_turn_ms < settings.input_buffer_ms
    speech_bytes = settings.output_buffer_ms * 48
    events_bytes = settings.output_events * EVENT_BYTES
    assert speech_bytes + events_bytes < settings.output_buffer_bytes


def test_what_the_engine_has_no_pipeline_for_is_left_out() -> None:
    settings = SessionSettings()
    heard = without_missing(settings, {settings.listening.vad, "x"}.__contains__)
    assert heard.listening.vad == settings.listening.vad
    assert (heard.listening.end_of_turn, heard.listening.asr) == (None, None)
    assert undetected(heard).listening.vad is None
    assert settings.listening.asr is not None


def test_engine_stages_may_be_done_without() -> None:
    settings = ListeningSettings(vad=None, end_of_turn=None, asr=None)
    assert (settings.vad, settings.end_of_turn, settings.asr) == (None, None, None)
