"""What the session has to say and has not handed to a connection yet.

Two kinds of queue: one for events that never wait, and one per response, in which speech is
held back to the pace of playback and everything behind it waits too. All of it is bounded, in
milliseconds, bytes and events. This module must not know what a response is, or the time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from duologue.core.audio import SAMPLE_BYTES, ms_to_samples, samples_to_ms
from duologue.core.errors import LimitExceeded
from duologue.protocol.events import Event, ItemAdded, ItemDone, ItemRetrieved
from duologue.protocol.items import text_bytes
from duologue.protocol.on_interruption import OnInterruption
from duologue.protocol.response_events import (
    AudioDelta,
    AudioTranscriptDelta,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    OutputTextDelta,
)

EVENT_BYTES = 256
"""What an event is booked at besides text and sound: struct, strings and queue slot, rounded up."""


class OutputOverflow(LimitExceeded):
    """The buffer is full; nothing was added. Fails the response that did not fit."""

    default_code = "output_overflow"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLimits:
    """How much may wait.

    Args:
        audio_ms: Speech of one response.
        held_bytes: Everything together. Speech leaves room for as many events as may wait, so
            that it cannot crowd them out.
        events: Events together. Beginning and end of a response always fit: only open responses
            have them.
    """

    audio_ms: int = 30_000
    held_bytes: int = 4 << 20
    events: int = 1024


class NextItem(msgspec.Struct, frozen=True, gc=False):
    """Here the next item of a response's output begins; never sent.

    What follows it belongs to an item that the client has not seen: an interruption takes back
    all of it.
    """

    on_interruption: ClassVar[OnInterruption] = OnInterruption.CLEARABLE

    response_id: str


class Speech(msgspec.Struct, frozen=True, gc=False):
    """Samples of a response that may go out now, s16le mono at the model's rate."""

    response_id: str
    pcm: bytes


_Entry = Event | NextItem | bytes
"""An event, or PCM."""


@dataclass(slots=True)
class _ResponseQueue:
    """What waits of one response.

    Args:
        events: How many of the entries are no speech.
        complete: No more speech comes.
    """

    entries: deque[_Entry] = field(default_factory=deque)
    events: int = 0
    speech_bytes: int = 0
    complete: bool = False

    def take_speech(self, max_bytes: int) -> bytes:
        """Remove at most so much of the speech that is next, up to the first event."""
        entries = self.entries
        parts: list[bytes] = []
        room = max_bytes
        while room > 0 and entries and isinstance(chunk := entries[0], bytes):
            if len(chunk) > room:
                entries[0] = chunk[room:]
                chunk = chunk[:room]
            else:
                entries.popleft()
            parts.append(chunk)
            room -= len(chunk)
        pcm = parts[0] if len(parts) == 1 else b"".join(parts)
        self.speech_bytes -= len(pcm)
        return pcm


class OutputBuffer:
    """Ordered, bounded output of one session."""

    __slots__ = (
        "_control",
        "_limits",
        "_max_speech_bytes",
        "_rate_hz",
        "_responses",
        "_roomy_bytes",
        "dropped_events",
        "held_bytes",
        "held_events",
    )

    def __init__(self, limits: OutputLimits, rate_hz: int) -> None:
        self.held_bytes = 0
        self.held_events = 0
        self.dropped_events = 0
        self._limits = limits
        self._rate_hz = rate_hz
        self._max_speech_bytes = ms_to_samples(limits.audio_ms, rate_hz) * SAMPLE_BYTES
        # Never more than half is reserved for events: below it there is nothing to work out.
        self._roomy_bytes = limits.held_bytes // 2
        self._control: deque[Event] = deque()
        self._responses: dict[str, _ResponseQueue] = {}

    def __bool__(self) -> bool:
        # Every entry books at least a byte.
        return self.held_bytes > 0

    @property
    def speech_ms(self) -> int:
        """Speech of all responses that waits."""
        size = sum(queue.speech_bytes for queue in self._responses.values())
        return samples_to_ms(size // SAMPLE_BYTES, self._rate_hz)

    def put(self, event: Event, *, always: bool = False) -> None:
        """Add an event that waits for nothing.

        Args:
            always: Never refuse it: it belongs to the beginning or end of a response, of which
                each has few.

        Raises:
            OutputOverflow: Too many events wait, and this one may not be dropped.
        """
        if self._admit(event, always=always):
            self._control.append(event)

    def open(self, response_id: str) -> None:
        """Give a response a queue of its own."""
        self._responses[response_id] = _ResponseQueue()

    def put_response(
        self, response_id: str, event: Event | NextItem, *, always: bool = False
    ) -> None:
        """Add an event of a response, behind all its speech so far.

        Args:
            always: As in ``put``.

        Raises:
            OutputOverflow: Too many events or bytes wait.
        """
        if self._admit(event, always=always):
            queue = self._responses[response_id]
            queue.entries.append(event)
            queue.events += 1

    def put_speech(self, response_id: str, pcm: bytes) -> None:
        """Add speech of a response.

        Raises:
            OutputOverflow: Too much speech or too many bytes wait.
        """
        queue = self._responses[response_id]
        size = len(pcm)
        waiting = queue.speech_bytes + size
        if waiting > self._max_speech_bytes:
            held_ms = samples_to_ms(waiting // SAMPLE_BYTES, self._rate_hz)
            raise OutputOverflow(
                f"{held_ms} ms of speech would wait, the limit is {self._limits.audio_ms} ms"
            )
        held = self.held_bytes + size
        if held > self._roomy_bytes:
            self._check_bytes(size, reserved=self._room_for_events())
        queue.entries.append(pcm)
        queue.speech_bytes = waiting
        self.held_bytes = held

    def complete(self, response_id: str) -> None:
        """No more speech of a response comes: the rest of it waits for nothing to be merged."""
        self._responses[response_id].complete = True

    def speech_samples(self, response_id: str) -> int:
        """Speech of a response that waits."""
        queue = self._responses.get(response_id)
        return 0 if queue is None else queue.speech_bytes // SAMPLE_BYTES

    def longest_speech_ms(self) -> int:
        """Speech that waits of the response that has most of it."""
        longest = max((queue.speech_bytes for queue in self._responses.values()), default=0)
        return samples_to_ms(longest // SAMPLE_BYTES, self._rate_hz)

    def is_empty(self, response_id: str) -> bool:
        """Tell whether nothing of a response waits."""
        queue = self._responses.get(response_id)
        return queue is None or not queue.entries

    def has_event(self) -> bool:
        """Tell whether an event is next somewhere, so that nothing holds it back."""
        if self._control:
            return True
        return any(
            q.events and not isinstance(q.entries[0], bytes) for q in self._responses.values()
        )

    def has_speech(self) -> bool:
        """Tell whether speech waits."""
        return any(queue.speech_bytes for queue in self._responses.values())

    def clear(self, response_id: str) -> None:
        """Drop what an interruption takes back: speech, text that was not delivered, new items."""
        queue = self._responses.get(response_id)
        if queue is None:
            return
        kept: deque[_Entry] = deque()
        unseen = False
        for entry in queue.entries:
            if isinstance(entry, bytes):
                self.held_bytes -= len(entry)
                continue
            unseen = unseen or isinstance(entry, NextItem)
            if unseen or entry.on_interruption is OnInterruption.CLEARABLE:
                self._release(entry)
            else:
                kept.append(entry)
        queue.entries = kept
        queue.events = len(kept)
        queue.speech_bytes = 0

    def close(self, response_id: str) -> None:
        """Let what is left of a response go out without waiting, and forget its queue."""
        queue = self._responses.pop(response_id, None)
        if queue is not None:
            for entry in queue.entries:
                assert not isinstance(entry, bytes | NextItem), (
                    "a response is cleared before it is closed"
                )
                self._control.append(entry)

    def take_event(self) -> Event | NextItem | None:
        """Remove the next event, or beginning of an item, that waits for no speech."""
        if self._control:
            event = self._control.popleft()
            self._release(event)
            return event
        for queue in self._responses.values():
            if queue.events and not isinstance(head := queue.entries[0], bytes):
                queue.entries.popleft()
                queue.events -= 1
                self._release(head)
                return head
        return None

    def take_speech(self, max_samples: int, min_samples: int) -> Speech | None:
        """Remove up to ``max_samples`` of the speech that is next.

        Less than ``min_samples`` is left where more may still be merged onto it.
        """
        for response_id, queue in self._responses.items():
            waiting = queue.speech_bytes
            if not waiting:
                continue
            entries = queue.entries
            if queue.events:
                if not isinstance(entries[0], bytes):
                    continue
            elif waiting < min_samples * SAMPLE_BYTES and not queue.complete:
                continue
            if len(entries) == 1 and waiting <= max_samples * SAMPLE_BYTES:
                # As good as always, where nothing waits for playback.
                pcm = entries.pop()
                assert isinstance(pcm, bytes), "no event is in it"
                queue.speech_bytes = 0
                self.held_bytes -= waiting
            else:
                pcm = queue.take_speech(max_samples * SAMPLE_BYTES)
                self.held_bytes -= len(pcm)
            return Speech(response_id, pcm)
        return None

    def count_held(self) -> tuple[int, int]:
        """Count bytes and events afresh; equals ``held_bytes`` and ``held_events``. For tests."""
        size = sum(booked_bytes(event) for event in self._control)
        events = len(self._control)
        for queue in self._responses.values():
            for entry in queue.entries:
                if isinstance(entry, bytes):
                    size += len(entry)
                else:
                    size += booked_bytes(entry)
                    events += 1
        return size, events

    def _admit(self, event: Event | NextItem, *, always: bool) -> bool:
        size = booked_bytes(event)
        if not always:
            try:
                self._check_events()
                self._check_bytes(size)
            except OutputOverflow:
                if event.on_interruption is OnInterruption.DROPPABLE:
                    self.dropped_events += 1
                    return False
                raise
        self.held_bytes += size
        self.held_events += 1
        return True

    def _check_events(self) -> None:
        if self.held_events >= self._limits.events:
            raise OutputOverflow(
                f"{self.held_events} events wait, the limit is {self._limits.events}"
            )

    def _room_for_events(self) -> int:
        to_come = max(0, self._limits.events - self.held_events)
        return min(to_come * EVENT_BYTES, self._limits.held_bytes // 2)

    def _check_bytes(self, size: int, reserved: int = 0) -> None:
        limit = self._limits.held_bytes - reserved
        if self.held_bytes + size > limit:
            raise OutputOverflow(f"{self.held_bytes + size} bytes would wait, the limit is {limit}")

    def _release(self, event: Event | NextItem) -> None:
        self.held_bytes -= booked_bytes(event)
        self.held_events -= 1


def booked_bytes(event: Event | NextItem) -> int:
    """What an event counts as: here, when it is sent, and while it may be sent again."""
    if isinstance(event, AudioDelta):  # when it is sent, nearly always
        return EVENT_BYTES + len(event.delta)
    match event:
        case AudioTranscriptDelta(delta=text) | OutputTextDelta(delta=text):
            return EVENT_BYTES + len(text)
        case FunctionCallArgumentsDelta(delta=text) | FunctionCallArgumentsDone(arguments=text):
            return EVENT_BYTES + len(text)
        case ItemAdded(item=item) | ItemDone(item=item) | ItemRetrieved(item=item):
            return EVENT_BYTES + text_bytes(item)
        case _:
            return EVENT_BYTES
