from __future__ import annotations

import pytest

from duologue.core.errors import LimitExceeded
from duologue.protocol.json_values import COUNTED_FROM_BYTES, refuse_many_json_values
from duologue.protocol.limits import MAX_VALUES

FILL = b'"' + b"x" * COUNTED_FROM_BYTES + b'"'
"""A text that makes a message long enough to be looked at."""

STRETCH = 256 * 1024


@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True)])
@pytest.mark.parametrize("value", [b'"a"', b'""', b"1", b"[]", b"{}", b"null", b'"\\""'])
def test_so_many_values_may_be_in_a_message_and_no_more(
    value: bytes, more: int, refused: bool
) -> None:
    opened = value in (b"[]", b"{}")
    count = (MAX_VALUES - 2) // 2 if opened else MAX_VALUES - 2
    message = b"[" + b",".join((FILL, *(value,) * (count + more))) + b" ]"
    if more:
        message = message[:-1] + b",[1,2]]"
    if refused:
        with pytest.raises(LimitExceeded, match="the body has more than 65536 values"):
            refuse_many_json_values(message, "the body")
    else:
        refuse_many_json_values(message, "the body")


@pytest.mark.parametrize(
    "text",
    [
        b'\\"x\\"' * MAX_VALUES,
        b"[{,}]" * MAX_VALUES,
        b"\\\\" * STRETCH + b'\\"' + b"," * 2 * MAX_VALUES,
        b"x" * (STRETCH - 1) + b'\\"' + b"," * 2 * MAX_VALUES,
    ],
    ids=["quotes", "marks", "backslashes", "an escape where one look ends"],
)
def test_what_stands_in_a_text_is_no_value(text: bytes) -> None:
    refuse_many_json_values(b'{"text":"' + text + b'","more":[1,2]}')


@pytest.mark.parametrize("end", [b"", b'"', b"\\", b'\\"'])
def test_a_message_may_be_cut_off_anywhere(end: bytes) -> None:
    refuse_many_json_values(b'{"text":"' + b"\\n" * COUNTED_FROM_BYTES + end)
    refuse_many_json_values(FILL + end)


def test_a_short_message_is_not_looked_at() -> None:
    refuse_many_json_values(b"[" + b"1," * (COUNTED_FROM_BYTES // 2 - 1) + b"]")
