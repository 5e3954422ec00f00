"""What a client may do to the conversation: create, retrieve, truncate and delete items.

This module must not know turns or responses; it sees items and how much of them was heard.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from duologue.core.errors import ProtocolError
from duologue.core.ids import IdMaker
from duologue.protocol.commands import CreateItem, DeleteItem, RetrieveItem, TruncateItem
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import (
    AudioCommitted,
    Event,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
)
from duologue.protocol.items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputAudio,
    Item,
    MessageItem,
    OutputAudio,
    as_shown,
    without_audio,
)
from duologue.sessions.history.history import ROOT, History
from duologue.sessions.history.prompt_view import check_can_be_read, view_of
from duologue.sessions.seeing.sight import Sight
from duologue.sessions.speaking.playback import PlaybackLedger


class Conversation:
    """The item commands of one session.

    Args:
        sight: What a camera shows; ``None``: the model understands no pictures.
    """

    def __init__(
        self,
        history: History,
        playback: PlaybackLedger,
        new_id: IdMaker,
        sight: Sight | None = None,
    ) -> None:
        self._sight = sight
        self._history = history
        self._playback = playback
        self._new_id = new_id

    def create(self, command: CreateItem, *, hears: bool = False) -> list[Event]:
        """Insert an item.

        Args:
            hears: Its speech will be transcribed.

        Raises:
            ClientError: The id is taken, the previous item unknown, the conversation full, the
                item is audio without a transcript or a picture that the model cannot see, or it
                is a function's output without a call.
        """
        check_can_be_read(command.item, "item", sees=self._sight is not None, hears=hears)
        item = without_audio(command.item)
        if isinstance(item, FunctionCallItem) and not item.call_id:
            item = msgspec.structs.replace(item, call_id=self._new_id("call"))
        if not item.id:
            item = msgspec.structs.replace(item, id=self._new_id("item"))
        if item.status != "completed":
            item = msgspec.structs.replace(item, status="completed")
        previous, forgotten = command.previous_item_id, list[str]()
        if isinstance(item, FunctionCallOutputItem):
            # What the model asked for finds room, as speech does.
            self._history.check(item, previous)
            forgotten = self._history.make_room(item)
        self._history.add(item, ROOT if previous in forgotten else previous)
        shown: list[Event] = []
        if isinstance(item, MessageItem) and item.role == "user" and previous is None:
            shown = self._show_frames(item.id)
        return [*map(_deleted, forgotten), *self._announce(item.id), *shown]

    def retrieve(self, command: RetrieveItem) -> Event:
        """Return an item as the session knows it, the assistant's speech as it was heard.

        Raises:
            ProtocolError: There is no such item.
        """
        entry = self._history.get(command.item_id, code=ErrorCode.ITEM_UNKNOWN_RETRIEVE)
        item = entry.item
        if entry.spoken is not None and entry.interrupted and isinstance(item, MessageItem):
            heard = entry.spoken.heard_text()
            item = msgspec.structs.replace(item, content=(OutputAudio(transcript=heard),))
        return ItemRetrieved(item=as_shown(item))

    def delete(self, command: DeleteItem) -> Event:
        """Remove an item.

        Raises:
            ProtocolError: There is no such item.
        """
        self._history.delete(command.item_id)
        return ItemDeleted(item_id=command.item_id)

    def truncate(self, command: TruncateItem, now: float) -> Event:
        """Cut an assistant's speech to what the client says was heard.

        Any whole number from 0 up is accepted: it is clamped to what was sent and to the
        client's own earlier cuts, since an error here ends the session of some stock clients.

        Raises:
            ProtocolError: The position is negative, or the item is not the assistant's speech.
        """
        if command.audio_end_ms < 0:
            raise ProtocolError(
                f"audio_end_ms is {command.audio_end_ms}, the least is 0",
                code=ErrorCode.INVALID_VALUE,
                param="audio_end_ms",
            )
        entry = self._history.get(command.item_id, code=ErrorCode.ITEM_UNKNOWN_TRUNCATE)
        if entry.spoken is None:
            raise ProtocolError(
                _why_not_speech(entry.item), code=ErrorCode.ITEM_UNKNOWN_TRUNCATE, param="item_id"
            )
        if command.content_index != 0:
            raise ProtocolError(
                f"content_index is {command.content_index}, the item has only part 0",
                code=ErrorCode.INVALID_VALUE,
                param="content_index",
            )
        heard = self._playback.truncate(command.item_id, command.audio_end_ms, now)
        if heard is None and entry.item.status == "in_progress":
            heard = 0
        # Else it was said so long ago that its positions are forgotten: it stays as it is.
        if heard is not None:
            entry.spoken.cut_at(heard)
            entry.interrupted = True
        self._history.touch()
        return ItemTruncated(
            item_id=command.item_id, content_index=0, audio_end_ms=command.audio_end_ms
        )

    def set_transcript(self, item_id: str, transcript: str) -> None:
        """Note what the person said in a turn, if its item is still there."""
        self._history.set_user_transcript(item_id, transcript)

    def text_of(self, item_id: str) -> str | None:
        """Return all the words of an item, or ``None`` where some are not known, or it is gone."""
        if item_id not in self._history:
            return None
        view = view_of(self._history.get(item_id))
        return None if view is None else view.text

    def lose_transcript(self, item_id: str, reason: str) -> None:
        """Note that nobody will know what the person said in a turn."""
        self._history.lose_user_transcript(item_id, reason)

    def commit_speech(self, item_id: str) -> Iterator[Event]:
        """Add the person's turn; yields its events, with what had to be forgotten for it."""
        for forgotten in self._history.make_room():
            yield ItemDeleted(item_id=forgotten)
        item = MessageItem(id=item_id, role="user", content=(InputAudio(),))
        yield AudioCommitted(previous_item_id=self._history.last_id, item_id=item_id)
        self._history.add(item)
        shown = self._show_frames(item_id)
        yield from self._announce(item_id)
        yield from shown

    def commit_silence(self, item_id: str) -> Iterator[Event]:
        """Add an empty turn of the person: nobody spoke for too long."""
        yield from self.commit_speech(item_id)
        self._history.set_user_transcript(item_id, "")
        self._history.get(item_id).silence = True
        self._history.touch()

    def _show_frames(self, item_id: str) -> list[Event]:
        """Let a turn of the person have what was seen before it."""
        return [] if self._sight is None else list(self._sight.give(item_id))

    def _announce(self, item_id: str) -> Iterator[Event]:
        previous = self._history.previous_id(item_id)
        shown = as_shown(self._history.get(item_id).item)
        yield ItemAdded(previous_item_id=previous, item=shown)
        yield ItemDone(previous_item_id=previous, item=shown)


def _deleted(item_id: str) -> Event:
    return ItemDeleted(item_id=item_id)


def _why_not_speech(item: Item) -> str:
    if not isinstance(item, MessageItem):
        return f"item '{item.id}' is a tool call or its output: it has no audio to truncate"
    if item.role != "assistant":
        return f"item '{item.id}' is a {item.role} message: only the assistant's speech can be cut"
    return f"item '{item.id}' is text: only speech can be truncated"
