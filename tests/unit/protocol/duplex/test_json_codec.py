from __future__ import annotations

import base64
import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ClientError
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.audio_formats import FloatPcmFormat, FormatPatch, PcmFormat, PcmuFormat
from duologue.protocol.commands import (
    CancelResponse,
    ClearAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)
from duologue.protocol.duplex.commands import (
    AcknowledgeEvents,
    AcknowledgePlayback,
    BargeIn,
    CloseSession,
    CommitTurn,
    DuplexCommand,
    Heartbeat,
    ResumeSession,
    ShowFrame,
)
from duologue.protocol.duplex.events import DuplexEvent
from duologue.protocol.duplex.json_codec import decode_duplex_command, encode_duplex_event
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import AudioCleared
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import FormattedAudioDelta
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    TurnDetectionPatch,
)
from tests.unit.protocol.messages import of

SAME = (
    AcknowledgeEvents,
    AcknowledgePlayback,
    Heartbeat,
    CloseSession,
    BargeIn,
    ResumeSession,
    ShowFrame,
)
"""Commands that have one form."""


def read(**fields: Any) -> Any:
    return decode_duplex_command(json.dumps(fields))


def refusal(**fields: Any) -> ClientError:
    with pytest.raises(ClientError) as caught:
        read(**fields)
    return caught.value


def session(**fields: Any) -> DuplexPatch:
    command = read(type="session.update", session=fields)
    assert isinstance(command, UpdateSession)
    patch = command.session
    assert isinstance(patch, DuplexPatch)
    flat = read(type="session.update", event_id="e", **fields)
    assert flat.session == patch
    return patch


@given(st.one_of([of(cls) for cls in SAME]))
def test_commands_survive_the_way(command: Any) -> None:

    assert decode_duplex_command(msgspec.json.encode(command)) == command


def test_every_command_of_the_dialect_is_read() -> None:
    assert set(SAME) | {AppendPlacedAudio, CommitTurn} == set(get_args(DuplexCommand))


@given(st.one_of([of(cls) for cls in get_args(DuplexEvent)]), st.integers(1, 2**31))
def test_every_event_carries_its_number_twice(event: Any, seq: int) -> None:
    written = json.loads(encode_duplex_event(event, seq))
    assert written["type"] == event.__struct_config__.tag
    assert (written["event_id"], written["server_event_seq"]) == (f"event_{seq}", seq)


def test_what_comes_before_the_session_counts_for_no_acknowledgement() -> None:
    assert "server_event_seq" not in json.loads(encode_duplex_event(AudioCleared(), 0))


@given(audio=st.binary(max_size=50), rate=st.sampled_from([8000, 24000]))
def test_speech_says_what_it_is(audio: bytes, rate: int) -> None:
    delta = FormattedAudioDelta(
        response_id='r"1',
        item_id="i",
        output_index=0,
        content_index=0,
        delta=audio,
        format="pcm16",
        sample_rate_hz=rate,
    )
    assert json.loads(encode_duplex_event(delta, 7)) == {
        "event_id": "event_7",
        "server_event_seq": 7,
        "format": "pcm16",
        "sample_rate_hz": rate,
        "type": "response.output_audio.delta",
        "response_id": 'r"1',
        "item_id": "i",
        "output_index": 0,
        "content_index": 0,
        "delta": base64.b64encode(audio).decode(),
    }


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@given(
    audio=st.binary(max_size=9) | st.just("no base64"),
    hints=st.dictionaries(
        st.sampled_from(["format", "sample_rate_hz", "start_sample", "event_id", "is_speech", "x"]),
        st.sampled_from(
            ["pcm16", "g711_ulaw", 'a":b', "", 8000, 16000, -1, True, None, {"rate": 1}]
        ),
        max_size=4,
    ),
)
def test_the_short_way_of_an_append_leads_to_the_same_as_the_long_one(
    separators: tuple[str, str], audio: bytes | str, hints: dict[str, Any]
) -> None:
    def outcome(fields: dict[str, Any]) -> Any:
        try:
            return decode_duplex_command(json.dumps(fields, separators=separators))
        except ClientError as exc:
            return exc.code, exc.param, exc.event_id

    text = audio if isinstance(audio, str) else base64.b64encode(audio).decode()
    kind, append = {"type": "input_audio_buffer.append"}, {"audio": text, **hints}
    assert outcome({**kind, **append}) == outcome({**append, **kind})


@pytest.mark.parametrize(
    "more",
    [
        {"start_sample": 5},
        {"delta": "AAAA"},
        {"start_sample": -1},
        {"start_sample": 7, "format": "mp3"},
        {"format": "pcm16", "sample_rate_hz": 24000},
    ],
)
def test_a_long_append_reads_as_a_short_one(more: dict[str, Any]) -> None:
    def outcome(size: int) -> Any:
        text = base64.b64encode(bytes(size)).decode()
        fields = {"event_id": "e", **more, "audio": text, "type": "input_audio_buffer.append"}
        try:
            append = decode_duplex_command(json.dumps(fields))
        except ClientError as exc:
            return exc.code, exc.param, exc.event_id
        assert isinstance(append, AppendAudio)
        assert append.audio == bytes(size)
        return msgspec.structs.replace(append, audio=b"")

    assert outcome(300_000) == outcome(3)


@given(
    seq=st.integers(-2, 1 << 70) | st.sampled_from([1.0, 1.5, True, None, "5", {}, [1]]),
    more=st.dictionaries(st.sampled_from(["event_id", "x"]), st.text(max_size=3)),
)
def test_the_short_way_of_an_acknowledgement_leads_to_the_same_as_the_long_one(
    seq: Any, more: dict[str, str]
) -> None:
    def outcome(fields: dict[str, Any]) -> Any:
        try:
            return decode_duplex_command(json.dumps(fields, separators=(",", ":")))
        except ClientError as exc:
            return exc.code, exc.param, exc.event_id

    kind, ack = {"type": "session.event_ack"}, {"server_event_seq": seq}
    assert outcome({**kind, **ack, **more}) == outcome({**ack, **more, **kind})


@pytest.mark.parametrize(
    "more",
    [b',"audio":"AAAA"', b',"type":"x"', b',"format":"pcm16","format":"pcm16"', b',"delta":""'],
)
def test_the_short_way_overlooks_no_second_key(more: bytes) -> None:
    message = b'{"type":"input_audio_buffer.append","audio":"AAAA"' + more + b"}"
    if b"delta" in more:
        assert decode_duplex_command(message) == AppendAudio(audio=bytes(3))
        return
    with pytest.raises(ClientError):
        decode_duplex_command(message)


@pytest.mark.parametrize("name", ["audio", "delta"])
def test_audio_has_two_names(name: str) -> None:
    command = read(type="input_audio_buffer.append", event_id="e", **{name: "AQA="})
    assert command == AppendAudio(event_id="e", audio=b"\x01\x00")


@pytest.mark.parametrize(
    ("hints", "declared"),
    [
        ({}, None),
        ({"format": "pcm16"}, None),
        ({"sample_rate_hz": 16000}, None),
        ({"format": "pcm16", "sample_rate_hz": 16000}, PcmFormat(rate=16000)),
        ({"input_audio_format": "s16le", "sample_rate": 8000}, PcmFormat(rate=8000)),
        ({"format": "pcm_f32le", "sample_rate_hz": 24000}, FloatPcmFormat(rate=24000)),
        ({"format": {"type": "audio/pcm", "rate": 48000}}, PcmFormat(rate=48000)),
        ({"format": "g711_ulaw"}, PcmuFormat()),
        ({"format": "g711_ulaw", "sample_rate_hz": 8000}, PcmuFormat()),
    ],
)
def test_an_append_may_say_what_it_is(hints: dict[str, Any], declared: Any) -> None:
    command = read(
        type="input_audio_buffer.append", audio="AAAA", duration_ms=1, is_speech=True, **hints
    )
    assert getattr(command, "declared", None) == declared


def test_an_append_may_say_where_it_belongs() -> None:
    assert read(type="input_audio_buffer.append", audio="", start_sample=5).start_sample == 5


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({}, "missing_required_parameter", "audio"),
        ({"audio": 5}, "invalid_value", "audio"),
        ({"audio": "=="}, "invalid_base64", "audio"),
        ({"delta": "=="}, "invalid_base64", "delta"),
        ({"audio": "", "format": "mp3"}, "unsupported_audio_format", "format"),
        (
            {"audio": "", "format": "g711_ulaw", "sample_rate": 16000},
            "invalid_value",
            "format.rate",
        ),
        ({"audio": "", "start_sample": -1}, "invalid_value", "start_sample"),
        ({"audio": "", "start_sample": 1.5}, "invalid_value", "start_sample"),
        ({"audio": "", "video_frames": ["AAAA"]}, "unsupported", "video_frames"),
    ],
)
def test_a_bad_append_is_refused_whole(fields: dict[str, Any], code: str, param: str) -> None:
    error = refusal(type="input_audio_buffer.append", event_id="e", **fields)
    assert (error.code, error.param, error.event_id) == (code, param, "e")


def test_a_key_that_stands_twice_in_an_append_is_refused() -> None:
    message = b'{"type":"input_audio_buffer.append","audio":"AAAA","audio":"AAAA"}'
    with pytest.raises(ClientError):
        decode_duplex_command(message)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"type": "input_audio_buffer.commit"}, None),
        ({"type": "input_audio_buffer.commit", "final": True, "response_create": False}, False),
        ({"type": "input_audio_buffer.commit", "create_response": True}, True),
        ({"type": "input.commit"}, True),
        ({"type": "input.commit", "create_response": False}, False),
        ({"type": "input.commit", "response_create": False}, False),
    ],
)
def test_a_commit_says_whether_it_wants_an_answer(fields: Any, wanted: bool | None) -> None:
    assert read(**fields) == CommitTurn(response_create=wanted)


def test_a_commit_ends_the_turn() -> None:
    assert refusal(type="input_audio_buffer.commit", final=False).param == "final"


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({"type": "close"}, CloseSession()),
        ({"type": "close_session", "reason": "r"}, CloseSession(reason="r")),
        ({"type": "audio.playback_ack", "played_ms": 5}, AcknowledgePlayback(played_ms=5)),
        ({"type": "input.cancel", "event_id": "e"}, ClearAudio(event_id="e")),
        ({"type": "signal_turn", "event": "barge_in"}, BargeIn()),
        ({"type": "turn.signal", "event": "user_started"}, BargeIn()),
        ({"type": "turn.signal", "event": "user_committed"}, CommitTurn()),
        (
            {"type": "turn.signal", "event": "input.cancel", "event_id": "e"},
            ClearAudio(event_id="e"),
        ),
        (
            {"type": "turn.signal", "event": "response.cancel", "payload": {"response_id": "r"}},
            CancelResponse(response_id="r"),
        ),
        (
            {
                "type": "turn.signal",
                "event": "conversation.item.delete",
                "payload": {"item_id": "i"},
            },
            DeleteItem(item_id="i"),
        ),
        ({"type": "conversation.item.retrieve", "item_id": "i"}, RetrieveItem(item_id="i")),
        ({"type": "response.create"}, CreateResponse()),
        (
            {"type": "conversation.item.truncate", "item_id": "i", "audio_end_ms": 5},
            TruncateItem(item_id="i", audio_end_ms=5),
        ),
    ],
    ids=str,
)
def test_other_names_mean_the_same(fields: Any, command: Any) -> None:
    assert read(**fields) == command


@pytest.mark.parametrize("name", ["input.text.append", "input_text.append", "push_text"])
def test_written_text_is_a_message_of_the_person(name: str) -> None:
    item = MessageItem(role="user", content=(InputText(text="hello"),))
    assert read(type=name, text="hello") == CreateItem(item=item)


def test_a_signal_that_nobody_knows_is_refused_with_those_that_are() -> None:
    error = refusal(type="turn.signal", event="turn.signal", event_id="e")
    assert error.param == "event"
    assert "user_committed" in error.message
    assert error.event_id == "e"


def test_null_leaves_turns_to_the_server() -> None:
    audio = session(turn_detection=None).audio
    assert isinstance(audio, AudioPatch)
    assert isinstance(audio.input, AudioInputPatch)
    assert audio.input.turn_detection is None


def test_settings_may_be_flat_or_nested_and_the_nested_one_counts() -> None:
    patch = session(
        model="m",
        modalities=["audio", "text"],
        input_audio_format="pcm_f32le",
        output_audio_format={"type": "pcm16", "sample_rate_hz": 22050},
        sample_rate_hz=24000,
        audio={
            "input": {"sample_rate_hz": 16000, "turn_detection": {"type": "server_vad"}},
            "output": {"voice": "alloy"},
        },
        turn_detection=None,
        voice="echo",
        temperature=0.5,
        max_tokens="infinity",
        overlap_policy="listen_only",
        playback_commit_policy="ack_only",
        idle_timeout_s=60,
        extra_body={"auto_response": False, "force_listen_count": 0, "overlap_barge_in_ms": 5},
        unknown={"x": 1},
    )
    assert isinstance(patch.audio, AudioPatch)
    assert isinstance(patch.audio.input, AudioInputPatch)
    assert isinstance(patch.audio.output, AudioOutputPatch)
    assert patch.audio.input.format == FormatPatch(type="audio/pcm_f32le", rate=16000)
    assert patch.audio.output.format == FormatPatch(type="audio/pcm", rate=22050)
    assert patch.audio.input.turn_detection == TurnDetectionPatch(type="server_vad")
    assert patch.audio.output.voice == "alloy"
    assert (patch.model, patch.temperature, patch.max_output_tokens) == ("m", 0.5, "inf")
    assert (patch.overlap_policy, patch.playback_commit_policy) == ("listen_only", "ack_only")
    assert (patch.auto_response, patch.overlap_barge_in_ms, patch.idle_timeout_s) == (False, 5, 60)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"input_audio_format": "mp3"}, "unsupported_audio_format"),
        ({"output_audio_format": "wav"}, "unsupported_audio_format"),
        ({"overlap_policy": "perhaps"}, "invalid_value"),
        ({"playback_commit_policy": "perhaps"}, "invalid_value"),
        ({"max_tokens": "many"}, "invalid_value"),
        ({"turn_detection": {"type": "server_vad", "typo": 1}}, "unknown_parameter"),
        ({"type": "transcription"}, "invalid_value"),
    ],
)
def test_a_bad_setting_is_refused_in_both_forms(fields: dict[str, Any], code: str) -> None:
    assert refusal(type="session.update", session=fields, event_id="e").code == code
    if "type" not in fields:
        flat = refusal(type="session.update", event_id="e", **fields)
        assert (flat.code, flat.event_id) == (code, "e")
