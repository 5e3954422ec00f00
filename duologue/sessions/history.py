"""The conversation: items in order, and of the assistant's speech only what was heard.

Transcript events stay what was sent; history and the next prompt hold what the person heard.
This module must not know how heard positions come about or what a prompt looks like.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from duologue.core.errors import LimitExceeded, ProtocolError
from duologue.duplex_plugins.contract import ItemView
from duologue.engines.payloads import SpeechMark
from duologue.protocol.items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputAudio,
    InputText,
    Item,
    MessageItem,
    OutputAudio,
    OutputText,
    text_bytes,
)

ROOT = "root"
"""The ``previous_item_id`` that means the front."""

MAX_CHARS_PER_S = 25
"""Nobody speaks faster, so text that is ahead of its audio is told from text that was spoken."""


@dataclass(slots=True)
class Spoken:
    """The assistant's speech in an item: its text so far, and how text and samples correspond.

    Args:
        complete: The last sample is the end of the text; else text may be ahead of its audio.
        cut_sample: Where the person stopped hearing it; ``None``: nowhere.
    """

    response_id: str
    rate_hz: int
    text: str = ""
    marks: list[SpeechMark] = field(default_factory=list)
    samples: int = 0
    complete: bool = False
    cut_sample: int | None = None

    def heard_text(self) -> str:
        """Return the text before the cut; all of it where there is none."""
        return self.text if self.cut_sample is None else self.text_until(self.cut_sample)

    def text_until(self, sample: int) -> str:
        """Return the words that had been spoken to their end at ``sample``.

        Between two marks the position is interpolated and rounded down to a whole word, and so
        it is after the last one, as far as anybody can have spoken by then.
        """
        start_text, start_sample = 0, 0
        for mark in self.marks:
            if mark.sample > sample:
                share = (sample - start_sample) / (mark.sample - start_sample)
                return self._whole_words(start_text, mark.text_end, share)
            start_text, start_sample = mark.text_end, mark.sample
        if self.complete and sample >= self.samples:
            return self.text
        rest = self.samples - start_sample
        if sample <= start_sample or rest <= 0:
            return self.text[:start_text].rstrip()
        end = len(self.text)
        if not self.complete:
            end = min(end, start_text + rest * MAX_CHARS_PER_S // self.rate_hz)
        return self._whole_words(start_text, end, min(1.0, (sample - start_sample) / rest))

    def _whole_words(self, start: int, end: int, share: float) -> str:
        reached = start + int((end - start) * share)
        if reached >= len(self.text) or self.text[reached].isspace():
            return self.text[:reached].rstrip()
        last_space = self.text.rfind(" ", start, reached)
        return self.text[: last_space if last_space > start else start].rstrip()


@dataclass(slots=True, eq=False)
class Entry:
    """One item of the conversation, and what the wire does not show of it.

    Args:
        lost: Why nobody knows what the person said in it.
        silence: Nobody spoke in it: the idle time-out made it.
        size_bytes: What the client put into it, as it was added.
    """

    item: Item
    spoken: Spoken | None = None
    interrupted: bool = False
    lost: str = ""
    silence: bool = False
    size_bytes: int = 0


class History:
    """The items of one session, bounded in number and in what clients put into them."""

    def __init__(self, max_items: int, max_bytes: int = 8 << 20) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._held_bytes = 0
        self._entries: list[Entry] = []
        self.changes = 0
        """Grows whenever ``view`` would be another one."""
        self._by_id: dict[str, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def touch(self) -> None:
        """Note that an entry was changed in place."""
        self.changes += 1

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._by_id

    @property
    def last_id(self) -> str | None:
        """The id of the last item; ``None`` where there is none."""
        return self._entries[-1].item.id if self._entries else None

    def previous_id(self, item_id: str) -> str | None:
        """The id of the item before this one; ``None`` for the first."""
        index = self._entries.index(self._by_id[item_id])
        return self._entries[index - 1].item.id if index else None

    def get(self, item_id: str, *, code: str = "item_not_found") -> Entry:
        """Return an item.

        Raises:
            ProtocolError: There is none with this id.
        """
        entry = self._by_id.get(item_id)
        if entry is None:
            raise ProtocolError(
                f"the conversation has no item '{item_id[:64]}'", code=code, param="item_id"
            )
        return entry

    def add(self, item: Item, previous_item_id: str | None = None) -> Entry:
        """Insert an item after another one, at the front (``root``), or at the end (``None``).

        Raises:
            ProtocolError: The id is taken, or the previous item is unknown. Nothing changed.
            LimitExceeded: The conversation is full. Nothing changed.
        """
        if item.id in self._by_id:
            raise ProtocolError(
                f"the conversation already has an item '{item.id[:64]}'",
                code="item_create_duplicate_item_id",
                param="item.id",
            )
        if len(self._entries) >= self._max_items:
            raise LimitExceeded(
                f"the conversation has {len(self._entries)} items, which is the limit; "
                "delete some first",
                code="conversation_full",
                param="item",
            )
        size = text_bytes(item)
        if self._held_bytes + size > self._max_bytes:
            raise LimitExceeded(
                f"the conversation would hold {self._held_bytes + size} bytes, "
                f"the limit is {self._max_bytes}; delete some items first",
                code="conversation_full",
                param="item",
            )
        entry = Entry(item, size_bytes=size)
        if previous_item_id is None:
            self._entries.append(entry)
        elif previous_item_id == ROOT:
            self._entries.insert(0, entry)
        else:
            after = self._by_id.get(previous_item_id)
            if after is None:
                raise ProtocolError(
                    f"the conversation has no item '{previous_item_id[:64]}' to insert after",
                    code="item_create_invalid_previous_item_id",
                    param="previous_item_id",
                )
            self._entries.insert(self._entries.index(after) + 1, entry)
        self._by_id[item.id] = entry
        self._held_bytes += size
        self.changes += 1
        return entry

    def make_room(self) -> list[str]:
        """Forget the oldest items until another one fits; returns their ids."""
        forgotten: list[str] = []
        while len(self._entries) >= self._max_items:
            entry = self._entries[0]
            self._remove(entry)
            forgotten.append(entry.item.id)
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
                InputAudio(transcript=transcript) if isinstance(part, InputAudio) else part
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

    def _remove(self, entry: Entry) -> None:
        self._entries.remove(entry)
        del self._by_id[entry.item.id]
        self._held_bytes -= entry.size_bytes
        self.changes += 1

    def view(self) -> tuple[ItemView, ...]:
        """Return the conversation as a prompt should have it."""
        views = (view_of(entry) for entry in self._entries)
        return tuple(view for view in views if view is not None)


def view_of(entry: Entry) -> ItemView | None:
    """Return one item as a prompt should have it, or ``None`` where it has no place in one."""
    item = entry.item
    if isinstance(item, FunctionCallItem | FunctionCallOutputItem):
        return None
    if entry.spoken is not None:
        text: str | None = entry.spoken.heard_text()
    else:
        text = _message_text(item)
    if item.role == "assistant" and not text:
        return None
    return ItemView(
        id=item.id,
        role=item.role,
        text=text,
        interrupted=entry.interrupted,
        silence=entry.silence,
    )


def check_can_be_read(item: Item, param: str) -> None:
    """Refuse speech of the person that nobody will ever transcribe.

    Raises:
        ProtocolError: A part is audio without a transcript.
    """
    content = item.content if isinstance(item, MessageItem) else ()
    for index, part in enumerate(content):
        if isinstance(part, InputAudio) and part.transcript is None:
            raise ProtocolError(
                "audio inside an item is not heard here: append it to the input audio buffer and "
                "commit it, or send its transcript",
                code="unsupported",
                param=f"{param}.content[{index}].transcript",
            )


def _message_text(item: MessageItem) -> str | None:
    texts: list[str] = []
    for part in item.content:
        match part:
            case InputText(text=text) | OutputText(text=text):
                texts.append(text)
            case InputAudio(transcript=None):
                return None
            case InputAudio(transcript=transcript) | OutputAudio(transcript=transcript):
                texts.append(transcript or "")
            case _:
                pass
    return " ".join(text for text in texts if text)
