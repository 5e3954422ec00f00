"""Two ends of a link without a socket, and a session that says what a test makes it say."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence

import msgspec

from duologue.core.errors import DuologueError
from duologue.hosts.engine_messages import FromEngine, ToEngine
from duologue.hosts.link_end import LinkEnd
from duologue.hosts.messages import LinkMessage
from duologue.hosts.outbox import Outbox
from duologue.hosts.port import Coming, Wanted
from duologue.hosts.questions import Done, Question, Reply
from duologue.hosts.settings import LinkSettings
from duologue.protocol.commands import Command
from duologue.protocol.events import ErrorBody, Event
from duologue.protocol.response_events import AudioDelta
from duologue.sessions.port import Attachment, Batch, CallsBackSound, Delivery, Joined
from tests.patience import PATIENCE_S


async def until(is_so: Callable[[], object]) -> None:
    """Let the loop run until something is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 - there is no event for everything that a test looks at
            await asyncio.sleep(0)


def sound(item_id: str, pcm: bytes = b"\x01\x02", response_id: str = "resp_1") -> AudioDelta:
    return AudioDelta(
        response_id=response_id, item_id=item_id, output_index=0, content_index=0, delta=pcm
    )


class FakeSession:
    """A ``Joined`` that delivers what it is told to."""

    def __init__(self, session_id: str = "sess_1") -> None:
        self.id = session_id
        self.attachment: Attachment | None = None
        self.waiting: deque[Delivery] = deque()
        self.seq = 0
        self.pulled: list[int] = []
        """Numbers of what has left the session."""

        self.said: list[Command] = []
        self.rejected: list[ErrorBody] = []
        self.heard: dict[str, int] = {}
        self.closed: str | None = None
        self.detached = 0
        self.refuses: DuologueError | None = None
        self._woken = False

    def say(self, *events: Event) -> None:
        for event in events:
            self.seq += 1
            self.waiting.append(Delivery(self.seq, event))
        if self.attachment is not None and not self._woken:
            self._woken = True
            self.attachment.on_output()

    def silence(self, item_id: str, beside: Collection[str] = ()) -> None:
        """An interruption: sound that waits is dropped here, and further on."""
        self.waiting = deque(
            delivery
            for delivery in self.waiting
            if not isinstance(delivery.event, AudioDelta)
            or item_id not in ("", delivery.event.item_id)
        )
        if isinstance(self.attachment, CallsBackSound):
            self.attachment.on_silenced(item_id, beside)

    def end(self, reason: str) -> None:
        attachment, self.attachment = self.attachment, None
        if attachment is not None:
            attachment.on_end(reason)

    def let_go(self, reason: str, words: Sequence[Delivery]) -> None:
        attachment, self.attachment = self.attachment, None
        if attachment is not None:
            attachment.on_let_go(reason, words)

    def attach(self, attachment: Attachment) -> None:
        self.attachment = attachment
        self._woken = False
        if self.waiting:
            self._woken = True
            attachment.on_output()

    def detach(self, attachment: Attachment) -> None:
        if attachment is self.attachment:
            self.attachment = None
            self.detached += 1

    def offer(self, command: Command) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.said.append(command)

    def reject(self, error: ErrorBody) -> None:
        self.rejected.append(error)

    def played(self, item_id: str, played_ms: int) -> None:
        self.heard[item_id] = played_ms

    def pull(self, max_bytes: int) -> Batch:
        deliveries = [self.waiting.popleft()] if self.waiting else []
        self.pulled += [delivery.seq for delivery in deliveries]
        self._woken = bool(self.waiting)
        return Batch(deliveries, self._woken)

    def close(self, reason: str) -> None:
        self.closed = reason


class FakeClient:
    """An attached connection that takes what it has room for."""

    def __init__(self, port: Joined) -> None:
        self.port = port
        self.reading = True
        self.got: list[Delivery] = []
        self.ended: str | None = None
        self.words: list[Delivery] = []
        self.held = False

    def on_output(self) -> None:
        if self.reading:
            self.read()

    def read(self, max_bytes: int = 1 << 20) -> None:
        batch = self.port.pull(max_bytes)
        self.got += batch.deliveries

    def on_end(self, reason: str) -> None:
        self.ended = reason

    def on_let_go(self, reason: str, last_words: Sequence[Delivery]) -> None:
        self.ended = reason
        self.words = list(last_words)

    def on_pressure(self, on: bool) -> None:
        self.held = on


class FakeServer:
    """What stands behind an end: gives out a session for each arrival, and answers ``Done``."""

    def __init__(self) -> None:
        self.sessions: list[FakeSession] = []
        self.arrivals: list[Wanted] = []
        self.heard: list[LinkMessage] = []
        self.unsaid: list[ToEngine | FromEngine] = []
        self.refuses: DuologueError | None = None
        self.later: Coming | None = None
        self.reply: Reply = Done()

    def receive(self, arrival: Wanted) -> Joined | Coming:
        self.arrivals.append(arrival)
        if self.refuses is not None:
            raise self.refuses
        if self.later is not None:
            return self.later
        session = FakeSession(f"sess_{len(self.sessions)}")
        self.sessions.append(session)
        return session

    async def answer(self, question: Question) -> Reply:
        if self.refuses is not None:
            raise self.refuses
        return self.reply

    def hear(self, message: LinkMessage) -> None:
        self.heard.append(message)

    def unsent(self, message: ToEngine | FromEngine, why: str) -> None:
        self.unsaid.append(message)


class FakeLink:
    """Both ends; messages move when a test says so, through their written form."""

    def __init__(self, group: asyncio.TaskGroup, limits: LinkSettings | None = None) -> None:
        limits = limits or LinkSettings()
        self.edge_server, self.host_server = FakeServer(), FakeServer()
        self.edge = LinkEnd(self.edge_server, Outbox(lambda: None), limits, group)
        self.host = LinkEnd(self.host_server, Outbox(lambda: None), limits, group)
        self.to_host: deque[bytes] = deque()
        self.to_edge: deque[bytes] = deque()

    def write(self) -> None:
        """Let both ends write what they have to say."""
        for end, pipe in ((self.edge, self.to_host), (self.host, self.to_edge)):
            if messages := end.outbox.take():
                pipe.append(msgspec.msgpack.encode(messages))

    def deliver_to_host(self, frames: int = 1) -> None:
        _deliver(self.host, self.to_host, frames)

    def deliver_to_edge(self, frames: int = 1) -> None:
        _deliver(self.edge, self.to_edge, frames)

    def settle(self) -> None:
        """Move messages until there are none."""
        self.write()
        while self.to_host or self.to_edge:
            self.deliver_to_host(len(self.to_host))
            self.deliver_to_edge(len(self.to_edge))
            self.write()


_DECODER = msgspec.msgpack.Decoder(list[LinkMessage])


def _deliver(end: LinkEnd, pipe: deque[bytes], frames: int) -> None:
    messages: list[LinkMessage] = []
    for _ in range(min(frames, len(pipe))):
        messages += _DECODER.decode(pipe.popleft())
    if messages:
        end.take(messages)
