"""Speech that comes on a track of its own: whose it is, from the events that come beside it.

Over WebRTC the server plays: it sends frames all the time, and says when the sound of an answer
begins and ends. This module must not know any WebRTC library, nor playback.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from duologue.protocol.events import (
    Event,
    OutputBufferCleared,
    OutputBufferStarted,
    OutputBufferStopped,
)
from duologue.protocol.items import MessageItem
from duologue.protocol.json_codec import UnknownEvent
from duologue.protocol.response_events import OutputItemAdded

TAIL_FRAMES = 10
"""Frames of an answer that may come after the event which says that it has ended: events are not
held up by the receiver's jitter buffer, which holds some 80 ms."""

_REMEMBERED = 64


class TrackAudio(msgspec.Struct, frozen=True, kw_only=True):
    """A frame of an answer."""

    response_id: str
    item_id: str
    pcm: bytes
    """s16le mono at 24 kHz."""


class TrackDone(msgspec.Struct, frozen=True, kw_only=True):
    """No more of an answer comes on the track."""

    response_id: str
    item_id: str


FromTrack: TypeAlias = TrackAudio | TrackDone
"""What a client makes of a track; it never travels."""


class TrackLabels:
    """Says whose speech the frames of one track are."""

    def __init__(self) -> None:
        self._items: dict[str, str] = {}
        """The first spoken item of each answer."""
        self._sounding: str | None = None
        self._frames_left: int | None = None
        """After the end was announced."""

    def on_event(self, event: Event | UnknownEvent) -> list[FromTrack]:
        """Take an event in the order in which it came."""
        match event:
            case OutputItemAdded(response_id=response_id, item=MessageItem(id=item_id)):
                self._items.setdefault(response_id, item_id)
                if len(self._items) > _REMEMBERED:
                    del self._items[next(iter(self._items))]
            case OutputBufferStarted(response_id=response_id):
                done = self._end()
                self._sounding = response_id
                return done
            case OutputBufferStopped(response_id=response_id) if response_id == self._sounding:
                self._frames_left = TAIL_FRAMES
            case OutputBufferCleared(response_id=response_id) if response_id == self._sounding:
                return self._end()
            case _:
                pass
        return []

    def on_frame(self, pcm: bytes) -> list[FromTrack]:
        """Take 20 ms of the track: s16le mono at 24 kHz. Silence between answers is nobody's."""
        response_id = self._sounding
        if response_id is None:
            return []
        item_id = self._items.get(response_id, response_id)
        frame = TrackAudio(response_id=response_id, item_id=item_id, pcm=pcm)
        if self._frames_left is None:
            return [frame]
        self._frames_left -= 1
        return [frame, *(self._end() if self._frames_left <= 0 else ())]

    def _end(self) -> list[FromTrack]:
        ended, self._sounding, self._frames_left = self._sounding, None, None
        if ended is None:
            return []
        return [TrackDone(response_id=ended, item_id=self._items.get(ended, ended))]
