"""The session: the thin shell around a session machine, and its single writer.

Applies inputs one at a time, performs the machine's effects on the engine, wakes the attached
connection when there is output, and keeps the one timer. What is different for a session that
outlives its connection is in ``resumption.resumable_session``; here are only the places for its
``lease`` and ``journal``, so that who looks at sessions need not tell two kinds apart. This module
must not decide anything about turns, responses or the wire, nor use either.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from duologue.core.clock import Clock
from duologue.core.errors import ClientError, PluginError
from duologue.core.mailbox import MailboxFull
from duologue.core.tasks import CrashBarrier
from duologue.core.wheel import TimerWheel
from duologue.engines.ports import EngineEvent, EnginePort
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import Command
from duologue.protocol.duplex.commands import AcknowledgeEvents
from duologue.protocol.errors import ErrorCode, error_body, refused
from duologue.protocol.events import ErrorBody
from duologue.protocol.response_events import AudioDelta
from duologue.sessions.backlog import is_long
from duologue.sessions.effects import CancelRequest, Effect, EndSession, LetGo, ReportFailure
from duologue.sessions.engine_effects import EngineEffects
from duologue.sessions.history.inheritance import Inheritance
from duologue.sessions.inbox import Inbox
from duologue.sessions.inputs import Rejected, SessionInput
from duologue.sessions.machine import SessionMachine
from duologue.sessions.owners import Owner
from duologue.sessions.port import Attachment, Batch, Delivery
from duologue.sessions.resumption.journal import Journal
from duologue.sessions.resumption.lease import Lease
from duologue.sessions.resumption.silence import sound_under_way
from duologue.sessions.via import SOCKET
from duologue.sessions.watching.observer import SessionObserver

CLIENT_GONE = "client_gone"

SLICES_PER_TICK = 2
"""Of a long append, at each tick of the wheel: 2 s of audio in 5 ms, a few milliseconds of CPU."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a session deals with, beside its machine.

    Args:
        on_closed: Called once, when nothing runs any more; ``on_unfinished`` where that failed.
        owner: Whose it is.
    """

    engine: EnginePort
    clock: Clock
    wheel: TimerWheel
    observer: SessionObserver
    inbox: Inbox
    on_closed: OnClosed
    on_unfinished: OnUnfinished
    owner: Owner


class Session:
    """A session in this process; a ``SessionPort``, an engine ``Subscriber``, and on the wheel."""

    __slots__ = (
        "__weakref__",
        "_attachment",
        "_barrier",
        "_busy",
        "_closed",
        "_engine_effects",
        "_now",
        "_observer",
        "_on_closed",
        "_on_unfinished",
        "_seq",
        "_stirred",
        "_timer_at",
        "_waking",
        "_wheel",
        "_woken",
        "edge_plays",
        "id",
        "inbox",
        "last_event_id",
        "machine",
        "opened_at",
        "owner",
        "via",
    )

    lease: Lease | None = None
    """Who drives the session; ``None``: it ends with its connection."""

    journal: Journal | None = None
    """What is kept for another connection; ``None``: nothing is."""

    def __init__(self, machine: SessionMachine, around: Surroundings) -> None:
        self.id = machine.id
        self.owner = around.owner
        self.machine = machine
        self._engine_effects = EngineEffects(around.engine, around.observer.refused)
        self._now = around.clock.now
        self._wheel = around.wheel
        self._observer = around.observer
        self.inbox = around.inbox
        self._on_closed = around.on_closed
        self._on_unfinished = around.on_unfinished
        # Weak, or a session that is over would wait for the collector of circles.
        crashed = weakref.WeakMethod(self._crashed)
        self._barrier = CrashBarrier(lambda exc: _call(crashed(), exc))
        self._attachment: Attachment | None = None
        # An input is being applied; what comes in meanwhile waits in the inbox.
        self._busy = False
        # The connection was told that there is output, and has not taken all of it.
        self._woken = False
        # It is being told, and pulls from within; and something else happened meanwhile.
        self._waking = self._stirred = False
        self._closed = False
        self.via = SOCKET
        self.edge_plays = False
        self.opened_at = self._now()
        self._timer_at = math.inf
        self._seq = 0
        """The number of the latest event. Nobody else counts them."""

        self.last_event_id: str | None = None
        """The client's own name for the latest message that it gave one."""

    @property
    def attached(self) -> bool:
        """Whether a connection takes its output."""
        return self._attachment is not None

    def start(self) -> None:
        """Greet the client."""
        self._enter_with(self.machine.open)

    def inherit(self, inherited: Inheritance) -> None:
        """Begin with a conversation, before anybody is attached."""
        self.machine.inherit(inherited.items, unanswered=inherited.unanswered)
        self.on_timer()

    # SessionPort

    def attach(self, attachment: Attachment) -> None:
        """Make a connection the session's own; an earlier one is told to end."""
        earlier, self._attachment = self._attachment, attachment
        self.machine.heard_by(sound_under_way(attachment))
        if earlier is not None:
            earlier.on_end(ErrorCode.STALE_LEASE)
        self._woken = False
        self._wake_and_rearm()
        if self._closed:
            # A plugin may fail as soon as it is greeted.
            self._attachment = None
            attachment.on_end(self.machine.ended or ErrorCode.SERVER_ERROR)

    def detach(self, attachment: Attachment) -> None:
        """The connection is gone, and the session with it."""
        if attachment is self._attachment:
            self._lose_connection()

    def offer(self, command: Command) -> None:
        """Apply what the client said, or let it wait behind what it said before.

        Raises:
            MailboxFull: It was refused, and nothing changed.
        """
        if command.event_id is not None:
            self.last_event_id = command.event_id
        if type(command) is AcknowledgeEvents:
            try:  # it waits for no turn, since it leads to nothing
                self._acknowledge(command.server_event_seq)
            except ClientError as exc:
                self.reject(error_body(exc, command.event_id))
        elif self._busy or self.inbox.waiting or is_long(command):
            self._wait_behind(command)
        else:
            self._apply(command)

    def reject(self, error: ErrorBody) -> None:
        """Answer what is no command with an ``error`` event, in turn if there is room to wait."""
        if error.event_id is not None:
            self.last_event_id = error.event_id
        if self._busy or self.inbox.waiting:
            try:
                self._wait_behind(Rejected(error))
                return
            except MailboxFull:
                if self._busy:
                    return
        self._apply(Rejected(error))

    def played(self, item_id: str, played_ms: int) -> None:
        """Note how much of an item the edge has played."""
        # Comes for every frame, changes one number and leads to nothing: no input of its own.
        self.machine.played(item_id, played_ms)

    def pull(self, max_bytes: int) -> Batch:
        """Return what may be written to the connection now."""
        self._busy = True
        deliveries = self._barrier.run(self._take_output, max_bytes) or []
        self._busy = False
        # The connection is not woken: what this leads to must not overtake what is returned here.
        if self.inbox.waiting:
            self._drain()
        self._woken = self._has_output()
        if not self._waking:
            self._wake_and_rearm()
        return Batch(deliveries, self._woken)

    def close(self, reason: str) -> None:
        """End the session."""
        self._enter_with(lambda now: self.machine.close(reason, now))

    # Engine subscriber and wheel member

    def on_engine_event(self, event: EngineEvent) -> None:
        """Apply what came out of the engine."""
        if not self._busy:
            self._apply(event)
            return
        try:
            self.inbox.put_event(event)
        except MailboxFull as exc:
            self._observer.mailbox_full()
            # Losing an output silently would leave a hole in the answer.
            self._crashed(exc)

    def on_timer(self) -> None:
        """Apply the passage of time; early calls find nothing to do."""
        self._timer_at = math.inf
        # First what the client has sent: else a turn would end, for its silence, before its words.
        for _ in range(SLICES_PER_TICK):
            if not self.inbox.client_waits or self._closed:
                break
            # A slice of a long append, or one whole input.
            if (piece := self.inbox.take_piece(self.machine.judge)) is not None:
                self._apply(piece)
        if not self._closed:
            self._enter_with(self.machine.on_timer)

    # What is different for a session that outlives its connection

    def _lose_connection(self) -> None:
        self._attachment = None
        self.close(CLIENT_GONE)

    def _let_go(self, reason: str) -> None:
        """Give up the connection, which takes nothing; another one may come."""
        raise AssertionError("a session that ends with its connection does not give it up")

    def _acknowledge(self, seq: int) -> None:
        """Note that the client has every event up to a number.

        Raises:
            ClientError: It cannot say so here, or there is no such event.
        """
        if self.machine.ended is None:
            self.machine.acknowledge(self._now())
            if not 0 <= seq <= self._seq:
                raise refused(
                    f"server_event_seq is {seq}, the latest event is {self._seq}",
                    "server_event_seq",
                    ErrorCode.INVALID_EVENT_ACK,
                )

    def _has_output(self) -> bool:
        return self.machine.speaking.has_output()

    def _next_deadline(self) -> float:
        return self.machine.next_deadline()

    # The single writer

    def _wait_behind(self, item: Command | Rejected) -> None:
        try:
            self.inbox.put(item)
        except MailboxFull:
            self._observer.mailbox_full()
            raise
        if not self._busy:
            self._wake_and_rearm()

    def _enter_with(self, change: Callable[[float], Sequence[Effect]]) -> None:
        self._busy = True
        with self._barrier:
            self._perform(change(self._now()))
        self._busy = False
        if self.inbox.waiting:
            self._drain()
        self._wake_and_rearm()

    def _apply(self, item: SessionInput) -> None:
        self._busy = True
        self._barrier.run(self._take_in, item)
        self._busy = False
        if self.inbox.waiting:
            self._drain()
        self._wake_and_rearm()

    def _drain(self) -> None:
        """Apply what came in meanwhile."""
        while (item := self.inbox.take()) is not None:
            self._busy = True
            self._barrier.run(self._take_in, item)
            self._busy = False

    def _take_in(self, item: SessionInput) -> None:
        clock, observer = self._now, self._observer
        now = clock()
        if isinstance(item, AppendAudio) and now < observer.heard_due_at:
            observer.heard_bytes += len(item.audio)
        else:
            observer.applied(item, now)
        effects = self.machine.apply(item, now)
        if effects:
            self._perform(effects)

    def _take_output(self, max_bytes: int) -> list[Delivery]:
        clock = self._now
        now = clock()
        events, effects = self.machine.pull(now, max_bytes)
        deliveries = []
        seq, observer = self._seq, self._observer
        for event in events:
            seq += 1
            deliveries.append(Delivery(seq, event))
            if isinstance(event, AudioDelta) and now < observer.said_due_at:
                observer.said_at = now
                observer.said_bytes += len(event.delta)
            else:
                observer.delivered(event, now)
        self._seq = seq
        if effects:
            self._perform(effects)
        return deliveries

    def _wake_and_rearm(self) -> None:
        """Wake the connection if there is output, then set the timer, once for all of it."""
        if self._waking:
            self._stirred = True
            return
        while self._attachment is not None and not self._woken and self._has_output():
            self._woken = self._waking = True
            self._stirred = False
            self._attachment.on_output()
            self._waking = False
            if not self._stirred:
                break
            # A connection that reads at once has also said something at once.
        if self.machine.timing_changed or self._woken or self.inbox.waiting:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._closed:
            return
        deadline = self._now() if self.inbox.waiting else self._next_deadline()
        # A later deadline waits until the earlier one has fired: most move on with every frame.
        if deadline < self._timer_at:
            self._timer_at = deadline
            self._wheel.set(self, deadline)

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case ReportFailure(part=part, code=code):
                    self._observer.listening_failed(part, code)
                case LetGo(reason=reason):
                    self._let_go(reason)
                case EndSession(reason=reason):
                    self._end(reason)
                case _:
                    failed = self._engine_effects.perform(effect, self)
                    if failed is not None:
                        self.inbox.put_event(failed)

    def _crashed(self, exc: Exception) -> None:
        """A bug of ours or of a plugin: this session closes, others never notice."""
        self._observer.crashed(exc)
        fault = ErrorCode.PLUGIN_ERROR if isinstance(exc, PluginError) else ErrorCode.SERVER_ERROR
        with CrashBarrier(partial(self._on_unfinished, self)):
            self._perform(self.machine.crash(fault))
            self.finish()

    def finish(self) -> None:
        """Let go of all that ever ran, where that has failed; the machine is over already."""
        if not self._closed:
            self._perform([CancelRequest(each) for each in self.machine.requests.opened_ids()])
            self._end(self.machine.ended or ErrorCode.SERVER_ERROR)

    def _end(self, reason: str) -> None:
        self._closed = True
        self._wheel.set(self, None)
        self._observer.closed(reason, self.machine.requests.stale_dropped)
        attachment, self._attachment = self._attachment, None
        if attachment is not None:
            attachment.on_end(reason)
        self._on_closed(self, reason)


OnClosed: TypeAlias = Callable[[Session, str], None]
OnUnfinished: TypeAlias = Callable[[Session, Exception], None]


def _call(method: Callable[[Exception], None] | None, exc: Exception) -> None:
    if method is not None:
        method(exc)
