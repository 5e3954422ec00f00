from __future__ import annotations

import pytest

from duologue.gateway.ws.frames import (
    BINARY,
    TEXT,
    answering_code,
    close_frame,
    message_frame,
    ping_frame,
    pong_frame,
)


@pytest.mark.parametrize(
    ("size", "head"),
    [
        (0, b"\x81\x00"),
        (125, b"\x81\x7d"),
        (126, b"\x81\x7e\x00\x7e"),
        (65535, b"\x81\x7e\xff\xff"),
        (65536, b"\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00"),
    ],
)
def test_a_message_has_the_shortest_form_of_its_length(size: int, head: bytes) -> None:
    assert message_frame(TEXT, b"m" * size) == head + b"m" * size
    assert message_frame(BINARY, b"m" * size) == b"\x82" + head[1:] + b"m" * size


def test_a_goodbye_holds_its_code_and_reason() -> None:
    assert close_frame(1001, "later") == b"\x88\x07\x03\xe9later"


@pytest.mark.parametrize(
    ("reason", "kept"),
    [("x" * 123, 123), ("x" * 124, 123), ("ü" * 62, 122), ("x" + "ü" * 61, 123)],
)
def test_a_reason_is_cut_to_what_fits_and_never_inside_a_character(reason: str, kept: int) -> None:
    frame = close_frame(1000, reason)
    assert frame[1] == 2 + kept == len(frame) - 2
    assert reason.startswith(frame[4:].decode())


def test_a_pong_repeats_the_ping() -> None:
    assert ping_frame() == b"\x89\x00"
    assert pong_frame(bytearray(b"abc")) == b"\x8a\x03abc"


@pytest.mark.parametrize(
    ("code", "answer"), [(1000, 1000), (1001, 1001), (4001, 4001), (0, 1000), (1006, 1000)]
)
def test_codes_that_may_not_be_written_are_answered_with_the_normal_one(
    code: int, answer: int
) -> None:
    assert answering_code(code) == answer
