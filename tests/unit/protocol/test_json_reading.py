"""What reads with care: the same in every dialect."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ClientError
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.beta_codec import BETA_JSON
from duologue.protocol.dialect import Dialect
from duologue.protocol.duplex.json_codec import DUPLEX_JSON
from duologue.protocol.json_codec import REALTIME_JSON
from duologue.protocol.limits import MAX_EVENT_ID_CHARS
from duologue.protocol.msgpack_codec import DUPLEX_MSGPACK, REALTIME_MSGPACK

IN_JSON = (REALTIME_JSON, BETA_JSON, DUPLEX_JSON)
LONG_PCM = bytes(range(240)) * 600
APPEND = "input_audio_buffer.append"

every_text_form = pytest.mark.parametrize(
    "dialect", IN_JSON, ids=lambda dialect: str(dialect.family)
)


def refusal(dialect: Dialect, message: bytes) -> ClientError:
    with pytest.raises(ClientError) as caught:
        dialect.decode_command(message)
    return caught.value


def base64_of(pcm: bytes) -> str:
    return base64.b64encode(pcm).decode()


def named_message(form: str, event_id: str) -> dict[str, Any]:
    match form:
        case "short":
            return {"type": APPEND, "audio": "AAAA", "event_id": event_id}
        case "name first":
            return {"event_id": event_id, "type": APPEND, "audio": "AAAA"}
        case "long":
            return {"event_id": event_id, "type": APPEND, "audio": base64_of(LONG_PCM)}
        case "placed":
            return {"type": APPEND, "audio": "AAAA", "start_sample": 5, "event_id": event_id}
        case "null":
            item = {"type": "message", "role": "user", "id": None, "content": []}
            return {"type": "conversation.item.create", "event_id": event_id, "item": item}
        case _:
            return {"type": "input_audio_buffer.clear", "event_id": event_id}


FORMS = ("short", "name first", "long", "placed", "null", "command")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("spaced", [False, True])
@every_text_form
def test_an_event_id_has_a_limit(dialect: Dialect, spaced: bool, form: str) -> None:
    separators = (", ", ": ") if spaced else (",", ":")

    def message(chars: int) -> bytes:
        fields = named_message(form, "e" * chars)
        return json.dumps(fields, separators=separators).encode()

    allowed = dialect.decode_command(message(MAX_EVENT_ID_CHARS))
    assert allowed.event_id == "e" * MAX_EVENT_ID_CHARS
    for chars in (MAX_EVENT_ID_CHARS + 1, 3_000_000):
        error = refusal(dialect, message(chars))
        assert (error.code, error.param, error.event_id) == ("limit_exceeded", "event_id", None)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dialect", [REALTIME_MSGPACK, DUPLEX_MSGPACK])
def test_an_event_id_has_the_same_limit_in_msgpack(dialect: Dialect, form: str) -> None:
    def message(chars: int) -> bytes:
        fields = named_message(form, "e" * chars)
        if fields["type"] == APPEND:
            fields["audio"] = LONG_PCM if form == "long" else b"\0\0"
        return msgspec.msgpack.encode(fields)

    assert dialect.decode_command(message(MAX_EVENT_ID_CHARS)).event_id is not None
    error = refusal(dialect, message(MAX_EVENT_ID_CHARS + 1))
    assert (error.code, error.param) == ("limit_exceeded", "event_id")


@pytest.mark.parametrize(
    "message",
    [
        b'{"type":"%b","event_id":"a","event_id":"b","audio":"AAAA"}' % APPEND.encode(),
        b'{"type":"%b","event_id":null,"event_id":"b","audio":"AAAA"}' % APPEND.encode(),
        b'{"event_id":"a","type":"%b","event_id":"b","audio":"%b"}'
        % (APPEND.encode(), base64_of(LONG_PCM).encode()),
        # read leniently, for the null
        b'{"type":"conversation.item.create","event_id":"a","event_id":"b",'
        b'"item":{"type":"message","role":"user","id":null,"content":[]}}',
        b'{"type":"response.create","event_id":"a","event_id":"b","response":{"metadata":null}}',
        b'{"type":"input_audio_buffer.clear","event_id":"a","event_id":"b"}',
    ],
)
@every_text_form
def test_a_key_that_stands_twice_is_refused(dialect: Dialect, message: bytes) -> None:
    error = refusal(dialect, message)
    assert (error.code, error.param, error.event_id) == ("invalid_value", "event_id", "b")


def test_a_key_that_stands_twice_is_refused_under_another_name_of_the_message_too() -> None:
    message = b'{"type":"input.commit","event_id":"a","event_id":"b"}'
    error = refusal(DUPLEX_JSON, message)
    assert (error.code, error.param, error.event_id) == ("invalid_value", "event_id", "b")


@every_text_form
def test_a_key_twice_in_an_append_too_long_to_be_searched_whole_is_refused(
    dialect: Dialect,
) -> None:
    # The audio comes escaped, so that it is not read apart from the rest.
    audio = b"\\/" * 400_000
    message = b'{"type":"%b","audio":"%b","event_id":"a","event_id":"b"}'
    assert refusal(dialect, message % (APPEND.encode(), audio)).param == "event_id"


@given(
    pcm=st.binary(max_size=90),
    event_id=st.none() | st.text(max_size=5),
    start_sample=st.none() | st.integers(0, 9),
    order=st.permutations(["type", "audio", "event_id", "start_sample"]),
    key=st.sampled_from(["audio", "delta"]),
)
def test_any_order_of_keys_is_the_same_append(
    pcm: bytes, event_id: str | None, start_sample: int | None, order: list[str], key: str
) -> None:
    values = {
        "type": APPEND,
        "audio": base64_of(pcm),
        "event_id": event_id,
        "start_sample": start_sample,
    }
    fields = {key if name == "audio" else name: values[name] for name in order}
    wanted: AppendAudio = AppendAudio(audio=pcm, event_id=event_id)
    if key == "audio":
        assert REALTIME_JSON.decode_command(json.dumps(fields).encode()) == wanted
    if start_sample is not None:
        wanted = AppendPlacedAudio(audio=pcm, event_id=event_id, start_sample=start_sample)
    for kept in (fields, {name: value for name, value in fields.items() if value is not None}):
        assert DUPLEX_JSON.decode_command(json.dumps(kept).encode()) == wanted


@pytest.mark.parametrize("twice", ["type", "audio", "start_sample", "event_id"])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_any_key_of_an_append_that_stands_twice_is_refused(
    twice: str, named: bool, placed: bool, first: bool
) -> None:
    pairs = [("type", APPEND), ("audio", "AAAA")]
    spoken: list[tuple[str, Any]] = [*pairs]
    if named or twice == "event_id":
        spoken.append(("event_id", "e"))
    if placed or twice == "start_sample":
        spoken.append(("start_sample", 5))
    again = next(pair for pair in spoken if pair[0] == twice)
    spoken = [again, *spoken] if first else [*spoken, again]
    for order in (spoken, spoken[::-1]):
        text = ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in order)
        error = refusal(DUPLEX_JSON, f"{{{text}}}".encode())
        assert (error.code, error.param) == ("invalid_value", twice)
