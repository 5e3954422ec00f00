from __future__ import annotations

import msgspec
import pytest

from duologue.core.errors import ProtocolError
from duologue.protocol.json_codec import decode_command
from duologue.protocol.json_refusals import (
    event_type,
    readable_event_id,
    refusal,
    refuse_duplicate_keys,
)


@pytest.mark.parametrize(
    ("message", "event_id"),
    [
        (b'{"event_id":"e1"}', "e1"),
        (b'{"x":[{"event_id":"inner"}],"event_id":"\\u00e9"}', "\u00e9"),
        (b'{"event_id":"' + b"e" * 512 + b'"}', "e" * 512),
        (b'{"event_id":"' + b"e" * 513 + b'"}', None),
        (b'{"event_id":"' + b"e" * 2_000_000 + b'"}', None),
        (b'{"event_id":"' + b"\\u00e9" * 512 + b'"}', "\u00e9" * 512),
        (b'{"event_id":"\\ud800"}', None),
        (b'{"event_id":5}', None),
        (b'{"event_id":null}', None),
        (b"{}", None),
        (b"[]", None),
        (b'{"event_id":"e1"', None),
        (b'{"event_id":"e1","x":' + b"[" * 100_000, None),
    ],
)
def test_the_clients_id_is_read_where_it_can_be(message: bytes, event_id: str | None) -> None:
    assert readable_event_id(message) == event_id


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b'{"type":"t","x":[]}', "t"),
        (b'{"type":1}', None),
        (b"{}", None),
        (b"{", None),
        (b'{"x":' + b"[" * 100_000, None),
    ],
)
def test_the_type_is_read_where_it_can_be(message: bytes, expected: str | None) -> None:
    assert event_type(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        b'{"a":1,"a":2}',
        b'{"b":[{"a":1,"a":1}]}',
        b'{"a":1,"\\u0061":2}',
        b'{"type":"x","n":' + b"1" * 5000 + b',"n":1}',
    ],
)
def test_a_key_that_stands_twice_is_refused(message: bytes) -> None:
    with pytest.raises(ProtocolError, match="stands twice"):
        refuse_duplicate_keys(message)


@pytest.mark.parametrize(
    "message",
    [
        b'{"a":{"a":1},"b":{"a":1}}',
        b'{"n":' + b"1" * 5000 + b',"f":1e999,"g":-0.0}',
        b'{"a":1,"a":2,"long":"' + b"x" * 300_000 + b'"}',
    ],
)
def test_equal_keys_of_different_objects_and_of_huge_messages_pass(message: bytes) -> None:
    refuse_duplicate_keys(message)


@pytest.mark.parametrize("message", [b'{"a":"\xff"}', b'{"a":"\x01"}', b'{"a":' + b"[" * 100_000])
def test_what_the_search_cannot_read_is_not_json(message: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        refuse_duplicate_keys(message)
    assert caught.value.code == "invalid_json"


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    n: int


class Outer(msgspec.Struct, tag="outer"):
    inner: Inner
    many: list[Inner] = []


class Other(msgspec.Struct, tag="other"):
    pass


@pytest.mark.parametrize(
    ("message", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"[]", "invalid_request", None),
        (b"{}", "missing_required_parameter", "type"),
        (b'{"type":"outer"}', "missing_required_parameter", "inner"),
        (b'{"type":"outer","inner":{}}', "missing_required_parameter", "inner.n"),
        (b'{"type":"outer","inner":{"n":1,"m":2}}', "unknown_parameter", "inner.m"),
        (b'{"type":"outer","inner":{"n":"x"}}', "invalid_value", "inner.n"),
        (
            b'{"type":"outer","inner":{"n":1},"many":[{"n":1},{}]}',
            "missing_required_parameter",
            "many[1].n",
        ),
        (b'{"type":"nope"}', "unknown_event_type", "type"),
        (b'{"type":"' + b"x" * 1_000_000 + b'"}', "unknown_event_type", "type"),
    ],
)
def test_the_decoders_error_is_told_by_code_and_field(
    message: bytes, code: str, param: str | None
) -> None:
    with pytest.raises(msgspec.MsgspecError) as caught:
        msgspec.json.decode(message, type=Outer | Other)
    error = refusal(caught.value, message)
    assert (error.code, error.param) == (code, param)
    assert len(error.message) < 300


def test_a_message_that_is_too_deep_is_told_as_that() -> None:
    assert refusal(RecursionError(), b"").message == "the message is nested too deeply"


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (
            b'{"type":"session.update","session":{"tools":[{"type":"mcp","server_label":"x"}]}}',
            "session.tools[0].type",
        ),
        (
            b'{"type":"response.create","response":{"tool_choice":{"type":"mcp"}}}',
            "response.tool_choice.type",
        ),
        (
            b'{"type":"conversation.item.create","item":{"type":"mcp_approval_response"}}',
            "item.type",
        ),
    ],
)
def test_mcp_is_refused_with_what_to_do_instead(message: bytes, param: str) -> None:
    with pytest.raises(ProtocolError, match="offer its tools here as functions") as refusal:
        decode_command(message)
    assert (refusal.value.code, refusal.value.param) == ("unsupported", param)
