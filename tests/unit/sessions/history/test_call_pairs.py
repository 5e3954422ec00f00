"""Which call is answered by which output."""

from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.protocol.items import FunctionCallItem, FunctionCallOutputItem, Item, MessageItem
from duologue.sessions.history.call_pairs import CallPairs

CALL = FunctionCallItem(id="a", name="f", call_id="c")
OUTPUT = FunctionCallOutputItem(id="b", call_id="c", output="1")
MESSAGE = MessageItem(id="m", role="user")


def pairs(*items: Item) -> CallPairs:
    table = CallPairs()
    for item in items:
        table.check(item, "item")
        table.add(item)
    return table


def test_a_call_is_open_until_it_has_its_output() -> None:
    assert pairs(CALL).is_open(CALL)
    assert not pairs(CALL, OUTPUT).is_open(CALL)
    assert not pairs(MESSAGE).is_open(MESSAGE)


def test_partners_know_each_other() -> None:
    table = pairs(CALL, MESSAGE, OUTPUT)
    assert (table.partner(CALL), table.partner(OUTPUT), table.partner(MESSAGE)) == ("b", "a", None)
    table.remove(MESSAGE)
    table.remove(OUTPUT)
    assert table.partner(CALL) is None
    table.remove(CALL)
    assert table.partner(OUTPUT) is None


@pytest.mark.parametrize(
    ("there", "new", "message"),
    [
        ((), OUTPUT, "there is no function call 'c' to answer"),
        ((CALL, OUTPUT), OUTPUT, "function call 'c' has its output already: item 'b'"),
        ((CALL,), CALL, "there already is a function call 'c'"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    there: tuple[Item, ...], new: Item, message: str
) -> None:
    with pytest.raises(ProtocolError, match=message) as refusal:
        pairs(*there).check(new, "response.input[3]")
    assert refusal.value.param == "response.input[3].call_id"
