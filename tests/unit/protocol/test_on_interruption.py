from __future__ import annotations

from typing import get_args

from duologue.protocol.events import Event
from duologue.protocol.on_interruption import OnInterruption


def tags(what: OnInterruption) -> set[str]:
    members = [member for member in get_args(Event) if member.on_interruption is what]
    return {member.__struct_config__.tag for member in members}


def test_an_interruption_takes_back_what_was_not_heard_and_nothing_else() -> None:
    assert tags(OnInterruption.CLEARABLE) == {
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_text.delta",
    }


def test_only_progress_may_be_dropped() -> None:
    assert tags(OnInterruption.DROPPABLE) == {
        "rate_limits.updated",
        "input_audio_buffer.accepted",
        "session.queued",
        "video.frame.ack",
    }


def test_every_event_says_what_happens_to_it() -> None:
    assert all(isinstance(member.on_interruption, OnInterruption) for member in get_args(Event))
