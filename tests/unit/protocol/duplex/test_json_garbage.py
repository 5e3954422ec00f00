"""What is no message of the dialect, however it is nested."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ClientError
from duologue.protocol.duplex.json_codec import decode_duplex_command


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_garbage_is_refused(message: bytes | str) -> None:
    with pytest.raises(ClientError):
        decode_duplex_command(message)


@pytest.mark.parametrize(
    "message",
    [
        b'{"type":"session.update","event_id":"e","sessio\xed\xa0\x80n":{"voice":null}}',
        b'{"type":"input.commit","event_id":"e","fin\xed\xa0\x80al":true}',
        b'{"type":"turn.signal","event_id":"e","event":"barge_in","payload":{"\xed\xa0\x80":1}}',
    ],
)
def test_a_name_that_is_no_text_is_refused_also_where_nobody_asked_for_it(message: bytes) -> None:
    with pytest.raises(ClientError) as refused:
        decode_duplex_command(message)
    assert (refused.value.code, refused.value.event_id) == ("invalid_json", "e")


@pytest.mark.parametrize(
    "head",
    [
        b'{"type":"input_audio_buffer.append","audio":"AAAA","x":',
        b'{"type":"turn.signal","event":"barge_in","payload":{"x":',
        b'{"type":"session.update","x":',
        b'{"type":"close","x":',
    ],
)
@pytest.mark.parametrize("depth", [500, 950, 1000, 5000])
def test_no_depth_of_nesting_breaks_the_reader(head: bytes, depth: int) -> None:
    tail = b"}" * head.count(b"{")
    with contextlib.suppress(ClientError):
        decode_duplex_command(head + b"[" * depth + b"]" * depth + tail)


NEST = b"[" * 20_000 + b"]" * 20_000


@pytest.mark.parametrize(
    "message",
    [
        b'{"type":"input_audio_buffer.append","audio":"AAAA","sample_rate_hz":%b}',
        b'{"type":"input_audio_buffer.append","audio":"AAAA","x":%b}',
        b'{"type":"input.commit","x":%b}',
        b'{"type":"turn.signal","event":"session.update","payload":{"session":%b}}',
        b'{"type":"session.update","x":%b}',
        b'{"type":"session.update","session":{"extra_body":%b}}',
    ],
)
@pytest.mark.parametrize("padding", [b"", b" " * 300_000], ids=["short", "long"])
def test_a_deep_nest_is_refused_wherever_it_stands(message: bytes, padding: bytes) -> None:
    with pytest.raises(ClientError) as refused:
        decode_duplex_command(message % NEST + padding)
    assert refused.value.code in ("invalid_json", "invalid_value", "unknown_event_type")


@pytest.mark.parametrize("depth", range(900, 1000, 7))
def test_a_nest_at_the_edge_of_what_can_be_read_harms_nobody(depth: int) -> None:
    nest = b'{"a":' * depth + b"1" + b"}" * depth
    signal = b'{"type":"turn.signal","event":"session.update","payload":{"session":{"x":%b}}}'
    for message in (signal % nest, signal % nest + b" " * 300_000):
        # Read or refused, as the depth may be; anything else would end the call.
        with contextlib.suppress(ClientError):
            decode_duplex_command(message)
