"""What must hold on the wire in every case, whatever happens; checked event by event."""

from __future__ import annotations

import json
from collections import defaultdict

from duologue.protocol.duplex.json_codec import encode_duplex_event
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.events import Event, OutputBufferCleared, ResumableSessionCreated
from duologue.protocol.items import FunctionCallItem, Item, MessageItem, OutputAudio, OutputText
from duologue.protocol.json_codec import decode_event, encode_event
from duologue.protocol.response_events import (
    AudioDelta,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseCreated,
    ResponseDone,
    TextDone,
)
from duologue.sessions.port import Delivery


class WireInvariants:
    """Watches the deliveries of one session.

    - Numbers increase by one (I2).
    - Each response is created once, done once, and then nothing of it follows (I1).
    - An item is added before anything about it, and nothing follows its end (I2).
    - After the event that interrupts, no audio of the old answer (I3).
    - Every event survives the codec (I6).
    - Deltas of a text, together, are the text (I7).
    - Items of a response stand in its output as they were added, and as they were done.
    """

    def __init__(self) -> None:
        self.created: list[str] = []
        self.done: list[str] = []
        self._seq = self._may_miss_until = 0
        self._interrupted: set[str] = set()
        self._items_open: set[str] = set()
        self._places: dict[str, list[str]] = defaultdict(list)
        self._outputs: dict[str, list[Item]] = defaultdict(list)
        self._text: dict[str, str] = defaultdict(str)

    @property
    def open_responses(self) -> list[str]:
        return [name for name in self.created if name not in self.done]

    def resumed(self, latest: int) -> None:
        """Another connection goes on; up to this number, sound that was taken back may be missing.

        Args:
            latest: The number of the latest event that was written to a connection.
        """
        self._may_miss_until = latest

    def see(self, delivery: Delivery) -> None:
        """Check one event."""
        if delivery.seq == 0:
            written = json.loads(encode_duplex_event(delivery.event, 0))
            assert "server_event_seq" not in written
            return
        if delivery.seq <= self._may_miss_until:
            assert delivery.seq > self._seq, "twice"
        else:
            follows = max(self._seq, self._may_miss_until)
            assert delivery.seq == follows + 1, f"event {delivery.seq} follows {follows}"
        self._seq = delivery.seq
        event = delivery.event
        self._see_on_the_wire(event, delivery.seq)
        response_id = getattr(event, "response_id", None)
        if response_id is not None:
            assert response_id in self.created, f"{response_id} was never created"
            if not isinstance(event, OutputBufferCleared):
                name = type(event).__name__
                assert response_id not in self.done, f"{name} after the response's end"
        self._see_kind(event)

    def _see_on_the_wire(self, event: Event, seq: int) -> None:
        wire = encode_event(event, seq)
        if type(event) is ResumableSessionCreated and wire is not None:
            assert json.loads(wire)["resume_token"] == event.resume_token
            return
        if wire is None or isinstance(getattr(event, "session", None), DuplexSessionResource):
            written = json.loads(encode_duplex_event(event, seq))
            assert written["type"] == event.__struct_config__.tag
            assert written["server_event_seq"] == seq
            return
        decoded, event_id = decode_event(wire)
        assert decoded == event
        assert event_id == f"event_{seq}"

    def _see_kind(self, event: Event) -> None:
        match event:
            case ResponseCreated(response=response):
                assert response.id not in self.created
                self.created.append(response.id)
            case ResponseDone(response=response):
                assert response.id in self.created
                assert response.id not in self.done
                assert list(response.output) == self._outputs.pop(response.id, [])
                self.done.append(response.id)
            case OutputItemAdded(item=item):
                assert item.status == "in_progress"
                places = self._places[event.response_id]
                assert event.output_index == len(places)
                places.append(item.id)
                self._items_open.add(item.id)
            case AudioTranscriptDelta() | OutputTextDelta() | FunctionCallArgumentsDelta():
                assert event.item_id in self._items_open
                assert self._places[event.response_id][event.output_index] == event.item_id
                self._text[event.item_id] += event.delta
            case AudioDelta():
                assert event.item_id in self._items_open
                assert event.response_id not in self._interrupted, "audio after the interruption"
            case AudioTranscriptDone(item_id=item_id, transcript=text):
                assert self._text[item_id] == text
            case TextDone(item_id=item_id, text=text):
                assert self._text[item_id] == text
            case FunctionCallArgumentsDone(item_id=item_id, arguments=arguments):
                assert event.item_id in self._items_open
                assert self._text[item_id] == arguments
            case OutputItemDone(item=item):
                self._items_open.remove(item.id)
                self._outputs[event.response_id].append(item)
                assert self._text[item.id] == said_in(item)
            case _:
                pass

    def interrupted(self, response_id: str) -> None:
        """From here on, no audio of this response may come."""
        self._interrupted.add(response_id)


def said_in(item: Item) -> str | None:
    """Return the text of a message, or the arguments of a call."""
    if isinstance(item, FunctionCallItem):
        return item.arguments
    assert isinstance(item, MessageItem)
    (part,) = item.content
    assert isinstance(part, OutputAudio | OutputText)
    return part.transcript if isinstance(part, OutputAudio) else part.text
