from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ProtocolError
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.beta_codec import decode_beta_command, encode_beta_event
from duologue.protocol.commands import UpdateSession
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import (
    ErrorBody,
    ErrorEvent,
    Event,
    IdleTimeoutTriggered,
    ItemAdded,
    ItemDone,
    SessionCreated,
    SessionUpdated,
)
from duologue.protocol.items import MessageItem, OutputAudio
from duologue.protocol.json_codec import decode_command, encode_event
from duologue.protocol.response_events import (
    AudioDelta,
    AudioDone,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    OutputItemDone,
    OutputTextDelta,
    ResponseCreated,
    ResponseDone,
    TextDone,
)
from duologue.protocol.response_resource import (
    ResponseAudioOutputResource,
    ResponseAudioResource,
    ResponseResource,
)
from duologue.protocol.session_config import SessionConfig, to_wire
from tests.unit.protocol.messages import events, of

PLACE = {"response_id": "r", "item_id": "i", "output_index": 0, "content_index": 0}
GA_NAMES = ("response.output_audio", "response.output_text", "conversation.item.added")


def written(event: Event, seq: int = 1) -> Any:
    message = encode_beta_event(event, seq)
    assert message is not None
    return json.loads(message)


def message(kind: str, **fields: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "event_id": "mine", **fields})


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (AudioDone(**PLACE), "response.audio.done"),
        (AudioTranscriptDelta(**PLACE, delta="x"), "response.audio_transcript.delta"),
        (AudioTranscriptDone(**PLACE, transcript="x"), "response.audio_transcript.done"),
        (OutputTextDelta(**PLACE, delta='"response.output_text'), "response.text.delta"),
        (TextDone(**PLACE, text="x"), "response.text.done"),
    ],
)
def test_events_of_an_answer_have_other_names_and_the_same_fields(event: Event, name: str) -> None:
    ga = json.loads(encode_event(event, 1) or b"")
    assert written(event) == ga | {"type": name}


@given(st.binary(max_size=60), st.integers(1, 2**40))
def test_audio_has_another_name_and_the_same_bytes(audio: bytes, seq: int) -> None:
    event = written(AudioDelta(**PLACE, delta=audio), seq)
    encoded = base64.b64encode(audio).decode()
    assert event == PLACE | {
        "event_id": f"event_{seq}",
        "type": "response.audio.delta",
        "delta": encoded,
    }


def test_an_item_is_announced_once_as_created() -> None:
    item = MessageItem(id="i", role="assistant", content=(OutputAudio(transcript="x"),))
    created = written(ItemAdded(previous_item_id=None, item=item))
    assert created["type"] == "conversation.item.created"
    assert created["item"]["content"] == [{"type": "audio", "transcript": "x"}]
    assert encode_beta_event(ItemDone(previous_item_id=None, item=item), 1) is None
    done = OutputItemDone(response_id="r", output_index=0, item=item)
    assert written(done)["item"] == created["item"]


def test_sessions_and_responses_are_flat() -> None:
    resource = to_wire(SessionConfig(), "sess_1", "m", 0)
    assert written(SessionCreated(session=resource))["session"]["input_audio_format"] == "pcm16"
    output = ResponseAudioOutputResource(format=PcmFormat(), voice="alloy")
    response = ResponseResource(
        id="resp_1",
        status="in_progress",
        output_modalities=("audio",),
        audio=ResponseAudioResource(output=output),
    )
    for event in (ResponseCreated(response=response), ResponseDone(response=response)):
        assert written(event)["response"]["modalities"] == ["text", "audio"]


def test_events_that_came_later_are_left_out() -> None:
    timeout = IdleTimeoutTriggered(audio_start_ms=0, audio_end_ms=1, item_id="i")
    assert encode_beta_event(timeout, 1) is None


@given(events(), st.integers(1, 2**40))
def test_no_event_has_a_name_that_came_with_ga(event: Event, seq: int) -> None:
    encoded = encode_beta_event(event, seq)
    if encoded is not None:
        decoded = json.loads(encoded)
        assert decoded["event_id"] == f"event_{seq}"
        assert not decoded["type"].startswith(GA_NAMES)
        assert list(decoded)[:2] == ["event_id", "type"]


def test_an_update_of_a_transcription_session_is_answered_by_its_own_event() -> None:
    resource = to_wire(SessionConfig(kind="transcription"), "sess_1", "m", 0)
    event = written(SessionUpdated(session=resource))
    assert event["type"] == "transcription_session.updated"
    assert event["session"]["object"] == "realtime.transcription_session"


@pytest.mark.parametrize(
    ("nested", "flat"),
    [
        ("session.audio.output.voice", "session.voice"),
        ("session.audio.input.turn_detection.threshold", "session.turn_detection.threshold"),
        ("session.output_modalities", "session.modalities"),
        ("response.max_output_tokens", "response.max_response_output_tokens"),
        ("session.audio.output.voices", "session.audio.output.voices"),
        ("item.content[0].text", "item.content[0].text"),
    ],
)
def test_an_error_names_the_field_as_the_client_knows_it(nested: str, flat: str) -> None:
    body = ErrorBody(type="invalid_request_error", message=f"{nested} is 7", param=nested)
    error = written(ErrorEvent(error=body))["error"]
    assert (error["param"], error["message"]) == (flat, f"{flat} is 7")


def test_an_error_without_a_field_stays_as_it_is() -> None:
    body = ErrorBody(type="server_error", message="session.output_modalities")
    assert written(ErrorEvent(error=body))["error"]["message"] == "session.output_modalities"


@given(of(AppendAudio))
def test_commands_are_those_of_ga(command: AppendAudio) -> None:
    wire = msgspec.json.encode(command)
    assert decode_beta_command(wire) == decode_command(wire) == command


def test_both_forms_of_a_session_are_read() -> None:
    nested = {"audio": {"output": {"voice": "verse", "format": {"type": "audio/pcm"}}}}
    update = decode_beta_command(message("session.update", session=nested))
    assert isinstance(update, UpdateSession)
    assert update.session.audio
    flat = {"voice": "verse"}
    assert isinstance(decode_beta_command(message("session.update", session=flat)), UpdateSession)


PICTURE = {
    "type": "message",
    "role": "user",
    "content": [
        {"type": "text", "text": "what is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    ],
}


@pytest.mark.parametrize(
    ("kind", "fields", "code", "param"),
    [
        (
            "session.update",
            {"session": {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 16000}}}}},
            ErrorCode.INVALID_VALUE,
            "session.audio.input.format.rate",
        ),
        (
            "session.update",
            {"session": {"audio": {"output": {"format": {"rate": 48000}}}}},
            ErrorCode.INVALID_VALUE,
            "session.audio.output.format.rate",
        ),
        (
            "session.update",
            {"session": {"audio": {"input": {"format": {"type": "audio/pcm_f32le"}}}}},
            ErrorCode.INVALID_VALUE,
            "session.audio.input.format.type",
        ),
        (
            "response.create",
            {"response": {"audio": {"output": {"format": {"type": "audio/pcm", "rate": 8000}}}}},
            ErrorCode.INVALID_VALUE,
            "response.audio.output.format.rate",
        ),
        (
            "conversation.item.create",
            {"item": PICTURE},
            ErrorCode.UNSUPPORTED,
            "item.content[1].type",
        ),
        (
            "response.create",
            {"response": {"input": [{"type": "item_reference", "id": "i"}, PICTURE]}},
            ErrorCode.UNSUPPORTED,
            "response.input[1].content[1].type",
        ),
    ],
)
def test_what_the_dialect_could_not_show_is_refused(
    kind: str, fields: dict[str, Any], code: ErrorCode, param: str
) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_beta_command(message(kind, **fields))
    assert (caught.value.code, caught.value.param) == (code, param)
    assert caught.value.event_id == "mine"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("session.update", {"session": {"audio": {"input": {"format": {"type": "audio/pcmu"}}}}}),
        ("session.update", {"session": {"audio": {"input": {"format": {"rate": 24000}}}}}),
        ("session.update", {"session": {"audio": {"input": None}}}),
        ("response.create", {}),
        ("response.create", {"response": {"audio": {}}}),
        ("response.create", {"response": {"input": []}}),
        ("conversation.item.create", {"item": {"type": "function_call", "name": "f"}}),
    ],
)
def test_all_else_is_taken(kind: str, fields: dict[str, Any]) -> None:
    assert decode_beta_command(message(kind, **fields)).event_id == "mine"
