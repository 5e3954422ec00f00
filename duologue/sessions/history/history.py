"""The conversation: items in order, and of the assistant's speech only what was heard.

Transcript events stay what was sent; history and the next prompt hold what the person heard.
This module must not know how heard positions come about or what a prompt looks like.
"""

from __future__ import annotations

import msgspec

from duologue.core.errors import LimitExceeded, ProtocolError
from duologue.duplex_plugins.contract import ItemView
from duologue.protocol.items import (
    ContentPart,
    InputAudio,
    Item,
    MessageItem,
    OutputAudio,
    text_bytes,
)
from duologue.sessions.history.call_pairs import CallPairs
from duologue.sessions.history.entry import Entry
from duologue.sessions.history.inheritance import Carried
from duologue.sessions.history.prompt_view import prompt_view

ROOT = "root"
"""The ``previous_item_id`` that means the front."""

REMEMBERED_DELETIONS = 64
"""Deleted items that are told from those that never were."""


class History:
    """The items of one session, bounded in number and in what clients put into them."""

    __slots__ = (
        "_by_id",
        "_deleted",
        "_entries",
        "_max_bytes",
        "_max_items",
        "_pairs",
        "changes",
        "held_bytes",
    )

    def __init__(self, max_items: int, max_bytes: int = 8 << 20) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self.held_bytes = 0
        """What clients have put into the items: text and pictures."""

        self._entries: list[Entry] = []
        self.changes = 0
        """Grows whenever ``view`` would be another one."""
        self._by_id: dict[str, Entry] = {}
        self._pairs = CallPairs()
        self._deleted: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def touch(self) -> None:
        """Note that an entry was changed in place."""
        self.changes += 1

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._by_id

    def items(self) -> list[Item]:
        """Return all items, in order."""
        return [entry.item for entry in self._entries]

    @property
    def last_id(self) -> str | None:
        """The id of the last item; ``None`` where there is none."""
        return self._entries[-1].item.id if self._entries else None

    def previous_id(self, item_id: str) -> str | None:
        """The id of the item before this one; ``None`` for the first."""
        index = self._entries.index(self._by_id[item_id])
        return self._entries[index - 1].item.id if index else None

    def get(
        self, item_id: str, *, code: str = "item_retrieve_invalid_item_id", param: str = "item_id"
    ) -> Entry:
        """Return an item.

        Args:
            code: Of the error where there is none.
            param: The field that names the item.

        Raises:
            ProtocolError: There is none with this id.
        """
        entry = self._by_id.get(item_id)
        if entry is None:
            was_there = item_id in self._deleted
            message = (
                f"item '{item_id[:64]}' was deleted from the conversation"
                if was_there
                else f"the conversation has no item '{item_id[:64]}'"
            )
            raise ProtocolError(message, code=code, param=param)
        return entry

    def check(self, item: Item, previous_item_id: str | None) -> None:
        """Refuse an item that could not be added even if there were room for one more.

        Raises:
            ProtocolError: As ``add``.
            LimitExceeded: It is too large for what the conversation may hold.
        """
        if item.id in self._by_id:
            raise ProtocolError(
                f"the conversation already has an item '{item.id[:64]}'",
                code="item_create_duplicate_item_id",
                param="item.id",
            )
        self._pairs.check(item, "item")
        if previous_item_id not in (None, ROOT) and previous_item_id not in self._by_id:
            raise ProtocolError(
                f"the conversation has no item '{(previous_item_id or '')[:64]}' to insert after",
                code="item_create_invalid_previous_item_id",
                param="previous_item_id",
            )
        size = text_bytes(item)
        if self.held_bytes + size > self._max_bytes:
            raise LimitExceeded(
                f"the conversation would hold {self.held_bytes + size} bytes, "
                f"the limit is {self._max_bytes}; delete some items first",
                code="conversation_full",
                param="item",
            )

    def add(self, item: Item, previous_item_id: str | None = None) -> Entry:
        """Insert an item after another one, at the front (``root``), or at the end (``None``).

        Raises:
            ProtocolError: The id is taken, the previous item is unknown, or a function call and
                its output do not fit. Nothing changed.
            LimitExceeded: The conversation is full. Nothing changed.
        """
        self.check(item, previous_item_id)
        if len(self._entries) >= self._max_items:
            raise LimitExceeded(
                f"the conversation has {len(self._entries)} items, which is the limit; "
                "delete some first",
                code="conversation_full",
                param="item",
            )
        size = text_bytes(item)
        entry = Entry(item, size_bytes=size)
        if previous_item_id is None:
            self._entries.append(entry)
        elif previous_item_id == ROOT:
            self._entries.insert(0, entry)
        else:
            after = self._by_id[previous_item_id]
            self._entries.insert(self._entries.index(after) + 1, entry)
        self._by_id[item.id] = entry
        self._pairs.add(item)
        self.held_bytes += size
        self.changes += 1
        return entry

    @property
    def room_bytes(self) -> int:
        """How much more clients may put into the items."""
        return self._max_bytes - self.held_bytes

    def add_parts(self, item_id: str, parts: tuple[ContentPart, ...]) -> None:
        """Put parts at the end of a message for which there is room."""
        entry = self._by_id[item_id]
        assert isinstance(entry.item, MessageItem)
        self._replace(entry, (*entry.item.content, *parts))

    def drop_last_parts(self, item_id: str, count: int) -> None:
        """Take parts from the end of a message, if it is still there."""
        entry = self._by_id.get(item_id)
        if entry is not None and isinstance(entry.item, MessageItem):
            self._replace(entry, entry.item.content[:-count])

    def spoken_in(self, response_id: str | None) -> list[Entry]:
        """Return the spoken items of an answer in order; of the latest one where none is named."""
        found: list[Entry] = []
        for entry in reversed(self._entries):
            spoken = entry.spoken
            if spoken is not None and response_id in (None, spoken.response_id):
                response_id = spoken.response_id
                found.append(entry)
        return found[::-1]

    def make_room(self, new: Item | None = None) -> list[str]:
        """Forget the oldest items until another one fits; returns their ids.

        A function call and its output go together, and one whose output is still to come stays
        as long as anything else can go.

        Args:
            new: What room is made for: if it is an output, its call stays.
        """
        forgotten: list[str] = []
        kept = None if new is None else self._pairs.partner(new)
        while len(self._entries) >= self._max_items:
            others = [each for each in self._entries if each.item.id != kept]
            done = (each for each in others if not self._pairs.is_open(each.item))
            entry = next(done, others[0] if others else None)
            if entry is None:
                break
            partner = self._pairs.partner(entry.item)
            for item_id in (entry.item.id, partner):
                if item_id is not None:
                    self._remove(self._by_id[item_id])
                    forgotten.append(item_id)
        return forgotten

    def delete(self, item_id: str) -> None:
        """Remove an item.

        Raises:
            ProtocolError: There is none with this id.
        """
        entry = self.get(item_id, code="item_delete_invalid_item_id")
        self._remove(entry)

    def set_user_transcript(self, item_id: str, transcript: str) -> None:
        """Note what the person said, if the item is still there."""
        entry = self._by_id.get(item_id)
        if entry is not None and isinstance(entry.item, MessageItem):
            content = tuple(
                InputAudio(transcript=transcript)
                if isinstance(part, InputAudio) and part.transcript is None
                else part
                for part in entry.item.content
            )
            entry.item = msgspec.structs.replace(entry.item, content=content)
            self.changes += 1

    def lose_user_transcript(self, item_id: str, reason: str) -> None:
        """Note that what the person said will stay unknown, if the item is still there."""
        self.set_user_transcript(item_id, "")
        entry = self._by_id.get(item_id)
        if entry is not None:
            entry.lost = reason

    def last_turn_lost(self) -> str:
        """Return why the words of the person's last item are unknown; empty where they are not."""
        for entry in reversed(self._entries):
            if isinstance(entry.item, MessageItem) and entry.item.role == "user":
                return entry.lost
        return ""

    def _replace(self, entry: Entry, content: tuple[ContentPart, ...]) -> None:
        assert isinstance(entry.item, MessageItem)
        before = text_bytes(entry.item)
        entry.item = msgspec.structs.replace(entry.item, content=content)
        more = text_bytes(entry.item) - before
        entry.size_bytes += more
        self.held_bytes += more
        self.changes += 1

    def _remove(self, entry: Entry) -> None:
        self._entries.remove(entry)
        del self._by_id[entry.item.id]
        self._pairs.remove(entry.item)
        self._deleted[entry.item.id] = None
        if len(self._deleted) > REMEMBERED_DELETIONS:
            del self._deleted[next(iter(self._deleted))]
        self.held_bytes -= entry.size_bytes
        self.changes += 1

    def heard_of(self, response_id: str) -> str:
        """Return what was heard of a response, as far as its items are still there."""
        spoken = (each.spoken for each in self._entries)
        return "".join(
            each.heard_text() for each in spoken if each and each.response_id == response_id
        )

    def count_held(self) -> int:
        """Count bytes afresh; equals ``held_bytes``. For tests."""
        return sum(entry.size_bytes for entry in self._entries)

    def samples_before(self, entry: Entry) -> int:
        """Return how much speech the same response has in items before this one."""
        assert entry.spoken is not None
        samples = 0
        for each in self._entries:
            if each is entry:
                break
            if each.spoken and each.spoken.response_id == entry.spoken.response_id:
                samples += each.spoken.samples
        return samples

    def carried(self) -> tuple[Carried, ...]:
        """Return what another session needs to go on with the conversation."""
        return tuple(
            Carried(
                item=as_heard(entry),
                interrupted=entry.interrupted,
                silence=entry.silence,
                lost=entry.lost,
            )
            for entry in self._entries
        )

    def inherit(self, carried: tuple[Carried, ...]) -> None:
        """Begin with the conversation of another session."""
        for each in carried:
            entry = self.add(each.item)
            entry.interrupted, entry.silence = each.interrupted, each.silence
            entry.lost = each.lost

    def view(self) -> tuple[ItemView, ...]:
        """Return the conversation as a prompt should have it."""
        return prompt_view(self._entries)


def as_heard(entry: Entry) -> Item:
    """Return an item, of the assistant's speech that was interrupted only what was heard."""
    item = entry.item
    if entry.spoken is None or not isinstance(item, MessageItem):
        return item
    if not entry.interrupted and entry.spoken.complete:
        return item
    heard = (OutputAudio(transcript=entry.spoken.heard_text()),)
    return msgspec.structs.replace(item, content=heard)
