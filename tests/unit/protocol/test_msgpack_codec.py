from __future__ import annotations

import contextlib
import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ClientError
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.commands import CommitAudio
from duologue.protocol.dialect import Dialect
from duologue.protocol.duplex.commands import AcknowledgeEvents
from duologue.protocol.duplex.events import DuplexEvent, SessionClosed
from duologue.protocol.duplex.json_codec import DUPLEX_JSON
from duologue.protocol.events import RealtimeEvent
from duologue.protocol.json_codec import REALTIME_JSON
from duologue.protocol.limits import MAX_APPEND_BYTES
from duologue.protocol.msgpack_codec import DUPLEX_MSGPACK, REALTIME_MSGPACK
from duologue.protocol.response_events import AudioDelta, FormattedAudioDelta
from tests.unit.protocol.messages import commands, events, of

PACK = msgspec.msgpack.encode
BOTH = [(REALTIME_MSGPACK, REALTIME_JSON), (DUPLEX_MSGPACK, DUPLEX_JSON)]
PLACE = {"response_id": "resp_1", "item_id": "item_1", "output_index": 0, "content_index": 0}


def refusal(dialect: Dialect, message: bytes) -> ClientError:
    with pytest.raises(ClientError) as caught:
        dialect.decode_command(message)
    return caught.value


@pytest.mark.parametrize(("binary", "text"), BOTH)
@given(command=commands())
def test_a_command_means_the_same_in_both_encodings(
    binary: Dialect, text: Dialect, command: Any
) -> None:
    try:
        expected: Any = text.decode_command(msgspec.json.encode(command))
    except ClientError as exc:
        expected = exc.code
    try:
        found: Any = binary.decode_command(PACK(command))
    except ClientError as exc:
        found = exc.code
    assert found == expected


@pytest.mark.parametrize(("binary", "text"), BOTH)
@given(
    event=events() | st.one_of([of(cls) for cls in get_args(DuplexEvent)]), seq=st.integers(0, 9**9)
)
def test_an_event_says_the_same_in_both_encodings(
    binary: Dialect, text: Dialect, event: Any, seq: int
) -> None:
    packed, written = binary.encode_event(event, seq), text.encode_event(event, seq)
    if written is None:
        assert packed is None
        return
    assert packed is not None
    in_json = json.loads(msgspec.json.encode(msgspec.msgpack.decode(packed)))
    assert in_json == json.loads(written)


@pytest.mark.parametrize("audio", [b"", b"\x00\xff\x80"])
def test_audio_is_bytes(audio: bytes) -> None:
    append = {"type": "input_audio_buffer.append", "audio": audio}
    assert REALTIME_MSGPACK.decode_command(PACK(append)) == AppendAudio(audio=audio)
    hints = {"format": "pcm16", "sample_rate_hz": 8000, "start_sample": 3}
    assert DUPLEX_MSGPACK.decode_command(PACK(append | hints)) == AppendPlacedAudio(
        audio=audio, start_sample=3, declared=PcmFormat(rate=8000)
    )
    delta = FormattedAudioDelta(**PLACE, delta=audio, format="pcm16", sample_rate_hz=24000)
    assert msgspec.msgpack.decode(DUPLEX_MSGPACK.encode_event(delta, 7) or b"") == {
        "event_id": "event_7",
        "server_event_seq": 7,
        "type": "response.output_audio.delta",
        **PLACE,
        "delta": audio,
        "format": "pcm16",
        "sample_rate_hz": 24000,
    }


def test_base64_is_understood_here_too() -> None:
    append = {"type": "input_audio_buffer.append", "audio": "AQA="}
    assert REALTIME_MSGPACK.decode_command(PACK(append)) == AppendAudio(audio=b"\x01\x00")


def test_acknowledgements_and_other_names_are_understood() -> None:
    ack = PACK({"type": "session.event_ack", "server_event_seq": 5})
    assert DUPLEX_MSGPACK.decode_command(ack) == AcknowledgeEvents(server_event_seq=5)
    assert REALTIME_MSGPACK.decode_command(PACK({"type": "input_audio_buffer.commit"})) == (
        CommitAudio()
    )
    assert DUPLEX_MSGPACK.decode_command(PACK({"type": "input.cancel"})) is not None


@pytest.mark.parametrize(
    "message", [b"", b"{}", b'{"type":"x"}', b"\xc1", PACK({1: 2}), PACK([1]), b"\x91" * 5000]
)
@pytest.mark.parametrize("dialect", [REALTIME_MSGPACK, DUPLEX_MSGPACK])
def test_garbage_is_refused(message: bytes, dialect: Dialect) -> None:
    assert refusal(dialect, message).code in {
        "invalid_msgpack",
        "invalid_request",
        "missing_required_parameter",
    }


@pytest.mark.parametrize("dialect", [REALTIME_MSGPACK, DUPLEX_MSGPACK])
@given(message=st.binary(max_size=80))
def test_no_bytes_break_the_reader(message: bytes, dialect: Dialect) -> None:
    with contextlib.suppress(ClientError):
        dialect.decode_command(message)


@pytest.mark.parametrize("dialect", [REALTIME_MSGPACK, DUPLEX_MSGPACK])
def test_what_is_too_large_is_refused(dialect: Dialect) -> None:
    append = {"type": "input_audio_buffer.append", "event_id": "e"}
    error = refusal(dialect, PACK(append | {"audio": bytes(MAX_APPEND_BYTES + 1)}))
    assert (error.code, error.param, error.event_id) == ("limit_exceeded", "audio", "e")
    long_id = refusal(dialect, PACK(append | {"audio": b"", "event_id": "e" * 1000}))
    assert long_id.param == "event_id"


def test_stock_clients_get_no_events_of_the_extensions() -> None:
    assert REALTIME_MSGPACK.encode_event(SessionClosed(session_id="s", reason="r"), 1) is None


def test_a_quarter_of_the_bytes_is_saved_both_ways() -> None:
    audio = bytes(range(256)) * 38
    ids = {"response_id": "resp_" + "r" * 20, "item_id": "item_" + "i" * 20}
    delta = AudioDelta(**PLACE | ids, delta=audio)
    text = len(REALTIME_JSON.encode_event(delta, 1000) or b"")
    binary = len(REALTIME_MSGPACK.encode_event(delta, 1000) or b"")
    assert binary < 0.76 * text
    append = AppendAudio(audio=audio[:1920])
    assert len(PACK(append)) < 0.76 * len(msgspec.json.encode(append))


def test_no_event_has_so_many_fields_that_its_map_needs_another_form() -> None:
    kinds = [*get_args(RealtimeEvent), *get_args(DuplexEvent), FormattedAudioDelta]
    assert (
        max(len(kind.__struct_fields__) for kind in kinds) + len(["type", "event_id", "seq", "rid"])
        < 16
    )
