"""Showing: the items of responses enter the conversation and the wire, and come to their end.

This module must not know what is generated, or at what pace it is sent.
"""

from __future__ import annotations

from collections.abc import Iterator

from duologue.protocol.events import Event, ItemDeleted
from duologue.sessions.history.history import History
from duologue.sessions.speaking.output_buffer import OutputBuffer
from duologue.sessions.speaking.output_items import OutputCall, OutputItem, OutputMessage
from duologue.sessions.speaking.response import Response
from duologue.sessions.speaking.response_wire import (
    audio_delta,
    closing_events,
    ending_events,
    finished_call,
    finished_message,
    opened_call,
    opened_message,
    opening_events,
    speaks,
)


class Showing:
    """Writes beginnings and ends of items into the history and the output buffer."""

    __slots__ = ("_buffer", "_conversation_id", "_history", "extended")

    def __init__(self, history: History, buffer: OutputBuffer, conversation_id: str) -> None:
        self._history = history
        self._buffer = buffer
        self._conversation_id = conversation_id
        self.extended = False
        """The client asked for more than the Realtime API."""

    def show(self, response: Response, item: OutputItem) -> None:
        """Begin the next item of a response.

        Its events always fit, and stand behind no others: an item that comes after this one
        names it.
        """
        response.shown += 1
        response.current = item
        if isinstance(item, OutputCall):
            item.wire = opened_call(item)
        else:
            item.wire = opened_message(item)
        previous = None
        if not response.out_of_band:
            for forgotten in self._history.make_room():
                self._buffer.put(ItemDeleted(item_id=forgotten), always=True)
            previous = self._history.last_id
            entry = self._history.add(item.wire)
            if isinstance(item, OutputMessage) and item.audio:
                entry.spoken = item.spoken
        for event in opening_events(response, item, previous):
            self._buffer.put(event, always=True)
        if self.extended and isinstance(item, OutputMessage):
            self._buffer.put(speaks(response, item), always=True)

    def turn_over(self, response: Response) -> None:
        """End the item of a response that is shown, all of which is sent, and begin the next."""
        for event in self._finish(response, delivered=True, whole=True):
            self._buffer.put(event, always=True)
        self.show(response, response.items[response.shown])

    def close(self, response: Response, *, delivered: bool) -> None:
        """End a response.

        Args:
            delivered: All that was generated is sent; else it was stopped.
        """
        if response.shown:
            whole = delivered and response.status == "completed"
            for event in self._finish(response, delivered=delivered, whole=whole):
                self._buffer.put_response(response.id, event, always=True)
        for event in ending_events(response, self._conversation_id):
            self._buffer.put_response(response.id, event, always=True)
        self._buffer.close(response.id)

    def _finish(self, response: Response, *, delivered: bool, whole: bool) -> Iterator[Event]:
        item, previous = response.current, None
        if isinstance(item, OutputCall):
            item.wire = finished_call(item)
        else:
            tail = response.encoder.flush() if delivered and item.sent_speech else b""
            if tail:
                yield audio_delta(response, item, tail, self.extended)
            item.wire = finished_message(item, "completed" if whole else "incomplete")
        if item.id in self._history:
            previous = self._history.previous_id(item.id)
            self._history.get(item.id).item = item.wire
            self._history.touch()
        yield from closing_events(response, item, previous)
