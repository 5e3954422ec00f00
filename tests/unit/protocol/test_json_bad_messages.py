"""Messages that are refused: each with one refusal, a stable code, and little work."""

from __future__ import annotations

from time import process_time

import pytest

from duologue.protocol.errors import ErrorCode
from tests.unit.protocol.json_messages import append, refused

BAD_AUDIO = {
    "padding alone": b"====",
    "no padding": b"abc",
    "newline": b"YWJj\\nYWJj",
    "space": b"YWJj YWJj",
    "URL alphabet": b"YW-_",
    "data URL": b"data:audio/wav;base64,YWJj",
    "5 MB with one star": b"A" * 5_000_000 + b"*AAA",
    "not ASCII": "YWJé".encode(),
    "escaped and not ASCII": b"YW\\u00e9j",
    "two texts": b"YQ==YQ==",
}


@pytest.mark.parametrize("audio", BAD_AUDIO.values(), ids=BAD_AUDIO)
def test_bad_base64_is_refused(audio: bytes) -> None:
    error = refused(append(audio))
    assert (error.code, error.param) == ("invalid_base64", "audio")
    assert refused(b" " + append(audio)[:-1] + b',"event_id":"e"}').event_id == "e"


@pytest.mark.parametrize("value", [b"5", b"null", b"[]", b'{"a":"b"}', b"true"])
def test_audio_that_is_no_text_is_refused(value: bytes) -> None:
    error = refused(b'{"event_id":"e","type":"input_audio_buffer.append","audio":%b}' % value)
    assert (error.code, error.param, error.event_id) == ("invalid_value", "audio", "e")


def test_an_append_without_audio_is_refused() -> None:
    error = refused(b'{"type":"input_audio_buffer.append","event_id":"e"}')
    assert (error.code, error.param, error.event_id) == ("missing_required_parameter", "audio", "e")


BAD_ENVELOPES: dict[str, tuple[bytes | str, str, str | None]] = {
    "not JSON": (b"hello", "invalid_json", None),
    "empty": (b"", "invalid_json", None),
    "list": (b"[]", "invalid_request", None),
    "null": (b"null", "invalid_request", None),
    "text": (b'"x"', "invalid_request", None),
    "no type": (b"{}", "missing_required_parameter", "type"),
    "type is a number": (b'{"type":1}', "unknown_event_type", "type"),
    "unknown type": (b'{"type":"foo"}', "unknown_event_type", "type"),
    "type with a space": (b'{"type":"response.cancel "}', "unknown_event_type", "type"),
    "beta name": (b'{"type":"response.audio.delta"}', "unknown_event_type", "type"),
    "huge type": (b'{"type":"' + b"x" * 3_000_000 + b'"}', "unknown_event_type", "type"),
    "equal keys": (
        b'{"type":"response.cancel","response_id":"a","response_id":"b"}',
        "invalid_value",
        "response_id",
    ),
    "equal keys of an append": (
        b'{"type":"input_audio_buffer.append","audio":"AAAA","audio":"BBBB"}',
        "invalid_value",
        "audio",
    ),
    "nested lists": (
        b'{"type":"session.update","session":{"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}}",
        "invalid_json",
        None,
    ),
    "nested objects": (
        b'{"type":"response.create","x":' + b'{"a":' * 40_000 + b"1" + b"}" * 40_000 + b"}",
        "invalid_json",
        None,
    ),
    "nested schema": (
        b'{"type":"session.update","session":{"tools":[{"type":"function","name":"f","parameters":'
        + b'{"a":' * 10_000
        + b"1"
        + b"}" * 10_000
        + b"}]}}",
        "invalid_json",
        None,
    ),
    "lists never closed": (b"[" * 15_000_000, "limit_exceeded", None),
    "not a number": (
        b'{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":NaN}',
        "invalid_json",
        None,
    ),
    "infinity": (
        b'{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":Infinity}',
        "invalid_json",
        None,
    ),
    "fraction": (
        b'{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":1.5}',
        "invalid_value",
        "audio_end_ms",
    ),
    "text for a number": (
        b'{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":"2000"}',
        "invalid_value",
        "audio_end_ms",
    ),
    "negative": (
        b'{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":-1}',
        "invalid_value",
        "audio_end_ms",
    ),
    "5,000 digits": (
        b'{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":' + b"1" * 5000 + b"}",
        "invalid_value",
        "audio_end_ms",
    ),
    "event_id of 2 MB": (
        b'{"type":"response.create","event_id":"' + b"e" * 2_000_000 + b'"}',
        "limit_exceeded",
        "event_id",
    ),
    "event_id of 2 MB on an append": (
        b'{"type":"input_audio_buffer.append","audio":"","event_id":"' + b"e" * 2_000_000 + b'"}',
        "limit_exceeded",
        "event_id",
    ),
    "event_id is a number": (
        b'{"type":"response.create","event_id":7}',
        "invalid_value",
        "event_id",
    ),
    "byte order mark": (b'\xef\xbb\xbf{"type":"response.create"}', "invalid_json", None),
    "lone surrogate escaped": (
        b'{"type":"response.cancel","response_id":"\\ud800"}',
        "invalid_json",
        None,
    ),
    "lone surrogate": ('{"type":"response.cancel","event_id":"\ud800"}', "invalid_json", None),
    "raw audio": (bytes(range(256)), "invalid_json", None),
    "something after the end": (b'{"type":"response.create"}{}', "invalid_json", None),
    "an ignored key that is no text": (
        b'{"type":"response.create","x":"\xff"}',
        "invalid_json",
        None,
    ),
    "wrong format": (
        b'{"type":"session.update","session":{"audio":{"input":{"format":{"type":"g711-ulaw"}}}}}',
        "invalid_value",
        "session.audio.input.format.type",
    ),
    "format as text": (
        b'{"type":"session.update","session":{"audio":{"output":{"format":"pcm16"}}}}',
        "invalid_value",
        "session.audio.output.format",
    ),
    "misspelt detection": (
        b'{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"foo":1}}}}}',
        "unknown_parameter",
        "session.audio.input.turn_detection.foo",
    ),
}


@pytest.mark.parametrize("case", BAD_ENVELOPES.values(), ids=BAD_ENVELOPES)
def test_a_bad_message_is_one_refusal_with_a_stable_code(
    case: tuple[bytes | str, str, str | None],
) -> None:
    message, code, param = case
    error = refused(message)
    assert (error.code, error.param) == (code, param)
    assert ErrorCode(error.code)
    assert len(error.message) < 400


@pytest.mark.parametrize(
    "message",
    [
        *(case[0] for case in BAD_ENVELOPES.values()),
        *(append(audio) for audio in BAD_AUDIO.values()),
    ],
    ids=[*BAD_ENVELOPES, *BAD_AUDIO],
)
def test_a_bad_message_costs_less_than_50_ms(message: bytes | str) -> None:
    best_s = 1.0
    for _ in range(3):
        start_s = process_time()
        refused(message)
        best_s = min(best_s, process_time() - start_s)
    assert best_s < 0.050


@pytest.mark.parametrize(
    "message",
    [
        b'{"event_id":"e1","type":"nope"}',
        b'{"type":"response.cancel","response_id":5,"event_id":"e1"}',
        b'{"type":"conversation.item.truncate","event_id":"e1","item_id":"i","audio_end_ms":-1}',
        b'{"type":"input_audio_buffer.append","audio":"*","event_id":"e1"}',
    ],
)
def test_a_refusal_echoes_the_clients_id(message: bytes) -> None:
    assert refused(message).event_id == "e1"
