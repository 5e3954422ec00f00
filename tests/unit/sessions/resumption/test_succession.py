from __future__ import annotations

from duologue.protocol.commands import CreateItem
from duologue.protocol.items import InputText, MessageItem
from duologue.sessions.resumption.succession import left_by
from tests.fakes.call import FakeCall
from tests.fakes.plugin import FakePlugin


def test_what_a_session_leaves_is_its_items_and_counts_their_words() -> None:
    call = FakeCall(FakePlugin())
    empty = left_by(call.session)
    assert (empty.items, empty.held_bytes, empty.unanswered) == ((), 0, False)
    item = MessageItem(id="item_1", role="user", content=(InputText(text="x" * 1000),))
    call.send(CreateItem(item=item))
    left = left_by(call.session)
    assert [each.item for each in left.items] == [item]
    assert 1000 < left.held_bytes < 2000
    assert (left.session_id, left.config) == (call.session.id, call.machine.config)


def test_an_heir_has_what_was_left() -> None:
    call, heir = FakeCall(FakePlugin()), FakeCall(FakePlugin())
    item = MessageItem(id="item_1", role="user", content=(InputText(text="Hello?"),))
    call.send(CreateItem(item=item))
    heir.machine.inherit(left_by(call.session).items, unanswered=False)
    assert heir.machine.history.items() == [item]
    assert left_by(heir.session).items == left_by(call.session).items
