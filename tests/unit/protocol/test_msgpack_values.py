from __future__ import annotations

import datetime

import msgspec
import pytest

from duologue.core.errors import LimitExceeded
from duologue.protocol.limits import MAX_VALUES
from duologue.protocol.msgpack_values import refuse_many_values

_FILL = b"x" * 100_000
_EVERY_KIND = (
    *(0, 127, -1, -32, 200, 60_000, 1 << 20, 1 << 40, -100, -1000, -100_000, -(1 << 40)),
    *(1.5, True, False, None, datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)),
    *(b"", b"x" * 300, _FILL, "", "x" * 40, "x" * 300, "x" * 70_000),
    *([], [1] * 20, [[]] * 3, {}, {"a": 1}, {str(n): n for n in range(20)}),
    *(msgspec.msgpack.Ext(5, b"x" * size) for size in (1, 2, 4, 8, 16, 3, 300, 70_000)),
)


def _values(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(1 + _values(each) for each in value.values())
    if isinstance(value, list):
        return 1 + sum(_values(each) for each in value)
    return 1


@pytest.mark.parametrize("room", [0, 1])
def test_every_kind_of_value_is_counted_as_one(room: int) -> None:
    """Were one read with a wrong length, what follows would be counted wrongly."""
    kinds = list(_EVERY_KIND)
    kinds.append([0] * (MAX_VALUES + 1 - room - _values([*kinds, []])))
    message = msgspec.msgpack.encode(kinds)
    if room:
        refuse_many_values(message)
    else:
        with pytest.raises(LimitExceeded, match=f"more than {MAX_VALUES}"):
            refuse_many_values(message)


def test_one_value_may_be_long() -> None:
    refuse_many_values(msgspec.msgpack.encode({"audio": b"\xdf\xff\xff\xff\xff" * 100_000}))


def test_what_is_announced_counts_though_it_does_not_come() -> None:
    with pytest.raises(LimitExceeded):
        refuse_many_values(b"\xdd\xff\xff\xff\xff" + bytes(70_000))


@pytest.mark.parametrize("first", range(256))
def test_nothing_that_is_cut_off_breaks_it(first: int) -> None:
    refuse_many_values(msgspec.msgpack.encode([_FILL])[:100_000] + bytes((first,)))


def test_a_short_message_is_left_to_the_decoder() -> None:
    refuse_many_values(msgspec.msgpack.encode([0] * 1000))
