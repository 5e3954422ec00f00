from __future__ import annotations

import time
from typing import Any

import msgspec
import pybase64
import pytest

from duologue.core.errors import ProtocolError
from duologue.protocol.beta_codec import BETA_JSON
from duologue.protocol.duplex.json_codec import DUPLEX_JSON
from duologue.protocol.json_codec import REALTIME_JSON
from duologue.protocol.json_integers import (
    MAX_INTEGER,
    MIN_INTEGER,
    is_wide,
    refuse_wide_integers,
    wide_integer,
)

WIDE = 10**30
LONG_TEXT = "x" * 200_000
DIALECTS = [REALTIME_JSON, BETA_JSON, DUPLEX_JSON]


@pytest.mark.parametrize("filled", [False, True], ids=["short", "long"])
@pytest.mark.parametrize(
    ("value", "param"),
    [
        ({"a": WIDE}, "a"),
        ({"a": -WIDE}, "a"),
        ({"a": MAX_INTEGER + 1}, "a"),
        ({"a": MIN_INTEGER - 1}, "a"),
        ({"a": [{"b": 1}, {"c": [0, WIDE]}]}, "a[1].c[1]"),
        ({"1" * 30: "2" * 30, "b": {'\\"': WIDE}}, 'b.\\"'),
    ],
)
def test_an_integer_beyond_64_bits_is_refused_wherever_it_stands(
    value: dict[str, Any], param: str, filled: bool
) -> None:
    if filled:
        value = {"fill": [LONG_TEXT, '\\"' * 100, LONG_TEXT], **value}
    message = msgspec.json.encode(value | {"event_id": "e"})
    with pytest.raises(ProtocolError, match="18446744073709551615") as refused:
        refuse_wide_integers(message)
    assert (refused.value.code, refused.value.param) == ("invalid_value", param)
    assert refused.value.event_id == "e"
    with pytest.raises(ProtocolError) as refused:
        refuse_wide_integers(message, "the body")
    assert refused.value.event_id is None


@pytest.mark.parametrize("filled", [False, True], ids=["short", "long"])
@pytest.mark.parametrize(
    "text",
    [
        b"18446744073709551615",
        b"-9223372036854775808",
        b"0.1234567890123456789012345",
        b"12345678901234567890123.0",
        b'"%d"' % WIDE,
        rb'"\"%d\\"' % WIDE,
        b'{"%d":[1,-2.5e3,true,null]}' % WIDE,
    ],
)
def test_what_64_bits_hold_passes_and_so_do_texts_and_fractions(text: bytes, filled: bool) -> None:
    refuse_wide_integers(
        b'{"fill":"%b", "a" : %b }' % (LONG_TEXT.encode() if filled else b"", text)
    )


@pytest.mark.parametrize("message", [b"", b"{", b'{"a":1', b"\xff"])
def test_what_is_no_json_is_left_to_the_decoder_unless_it_has_a_long_number(
    message: bytes,
) -> None:
    refuse_wide_integers(message)
    refuse_wide_integers(message + LONG_TEXT.encode())
    for digits in (30, 6000):
        with pytest.raises(ProtocolError) as refused:
            refuse_wide_integers(message + b"9" * digits)
        assert refused.value.code in ("invalid_json", "invalid_value", "invalid_request")


@pytest.mark.parametrize("end", [b"", b"\\", b'\\"', b"9" * 30, b"x" * 300_000, b'"'])
def test_a_message_may_be_cut_off_anywhere(end: bytes) -> None:
    with pytest.raises(ProtocolError) as refused:
        DUPLEX_JSON.decode_command(b'{"type":"response.cancel","a":"' + end)
    assert refused.value.code == "invalid_json"


def test_the_error_shows_the_beginning_of_the_value() -> None:
    error = wide_integer(10**4000, "seed")
    assert error.message.startswith("seed: 1000")
    assert len(error.message) < 200
    assert [is_wide(each) for each in (WIDE, -WIDE, MAX_INTEGER, True, "x", 1e40)] == [
        *(True, True, False),
        *(False, False, False),
    ]


def test_a_deep_place_has_a_short_name() -> None:
    message = b'{"a":' * 500 + b"%d" % WIDE + b"}" * 500
    with pytest.raises(ProtocolError) as refused:
        refuse_wide_integers(message)
    assert 100 < len(refused.value.param or "") <= 160


def test_a_recording_is_stepped_over() -> None:
    audio = pybase64.b64encode(bytes(range(256)) * 60_000)
    began = time.process_time()
    refuse_wide_integers(b'{"type":"x", "audio":"%b"}' % audio)
    assert time.process_time() - began < 0.1, "20 MB, not byte by byte"


COMMANDS: list[tuple[dict[str, Any], str]] = [
    (
        {"type": "conversation.item.truncate", "item_id": "x", "content_index": 0}
        | {"audio_end_ms": WIDE},
        "audio_end_ms",
    ),
    ({"type": "response.create", "response": {"max_output_tokens": WIDE}}, "max_output_tokens"),
    ({"type": "response.create", "response": {"metadata": {"a": WIDE}}}, "metadata"),
    (
        {"type": "session.update"}
        | {"session": {"tools": [{"type": "function", "name": "f", "parameters": {"x": WIDE}}]}},
        "session.tools[0].parameters.x",
    ),
    ({"type": "response.cancel", "unknown": [{"x": WIDE}]}, "unknown[0].x"),
]


@pytest.mark.parametrize(("command", "param"), COMMANDS, ids=[param for _, param in COMMANDS])
@pytest.mark.parametrize("dialect", DIALECTS, ids=["realtime", "beta", "duplex"])
def test_every_dialect_refuses_it(dialect: Any, command: dict[str, Any], param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        dialect.decode_command(msgspec.json.encode(command | {"event_id": "mine"}))
    assert refused.value.event_id == "mine"
    assert param in (refused.value.param or "")


@pytest.mark.parametrize(
    "message",
    [
        b'{"type":"session.event_ack","server_event_seq":%d}' % WIDE,
        b'{"type":"session.event_ack", "server_event_seq":%d}' % WIDE,
        b'{"type":"input_audio_buffer.append","audio":"AAAA","start_sample":%d}' % WIDE,
        b'{"type":"input_audio_buffer.append","audio":"AAAA","start_sample":-%d}' % WIDE,
        b'{"type": "input_audio_buffer.append", "audio": "AAAA", "start_sample": %d}' % WIDE,
        b'{"type":"input_audio_buffer.append","start_sample":%d,"audio":"AAAA"}' % WIDE,
        b'{"type":"input_audio_buffer.append","start_sample":%d,"audio":"%b"}'
        % (WIDE, b"AAAA" * 50_000),
    ],
)
def test_the_quick_paths_let_none_pass(message: bytes) -> None:
    with pytest.raises(ProtocolError) as refused:
        DUPLEX_JSON.decode_command(message)
    assert refused.value.param in ("server_event_seq", "start_sample")
