from __future__ import annotations

from typing import get_args

from duologue.protocol.events import Event, RealtimeEvent

GA_SERVER_EVENTS_OF_A_VOICE_CALL = {
    "error",
    "session.created",
    "session.updated",
    "conversation.item.added",
    "conversation.item.done",
    "conversation.item.retrieved",
    "conversation.item.truncated",
    "conversation.item.deleted",
    "conversation.item.input_audio_transcription.delta",
    "conversation.item.input_audio_transcription.completed",
    "conversation.item.input_audio_transcription.failed",
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "input_audio_buffer.cleared",
    "input_audio_buffer.timeout_triggered",
    "output_audio_buffer.started",
    "output_audio_buffer.stopped",
    "output_audio_buffer.cleared",
    "response.created",
    "response.done",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.content_part.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.output_audio_transcript.delta",
    "response.output_audio_transcript.done",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "rate_limits.updated",
}


def test_no_event_outside_the_dialect_is_ever_sent_and_none_is_missing() -> None:
    tags = [member.__struct_config__.tag for member in get_args(RealtimeEvent)]
    assert sorted(tags) == sorted(GA_SERVER_EVENTS_OF_A_VOICE_CALL)


def test_events_cannot_be_changed_and_have_no_number_of_their_own() -> None:
    for member in get_args(Event):
        assert member.__struct_config__.frozen
        assert "event_id" not in member.__struct_fields__
