"""A session at the other end of a link, as a ``SessionPort``: pulled and offered like a local one.

What is to be written waits here, as much as its window allows; the other end refills it as it is
taken. An interruption reaches the sound that waits. This module must not know sockets, nor what a
session is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from duologue.core.errors import CapacityError, DuologueError, LimitExceeded
from duologue.core.mailbox import MailboxFull
from duologue.engines.framing import MAX_FRAME_BYTES
from duologue.hosts.faults import exception_of, host_lost
from duologue.hosts.messages import (
    Applied,
    Attach,
    ChannelEnded,
    ChannelOutput,
    CloseChannel,
    ConnectionLetGo,
    Detach,
    Misread,
    Opened,
    Refused,
    Said,
    Silenced,
    ToOpener,
)
from duologue.hosts.outbox import Outbox
from duologue.hosts.packing import pack_command, unpack_deliveries, unpack_event, weight
from duologue.hosts.settings import TOLD_PARTS, LinkSettings
from duologue.protocol.commands import Command
from duologue.protocol.errors import ErrorCode, error_event
from duologue.protocol.events import ErrorBody
from duologue.protocol.response_events import AudioDelta
from duologue.sessions.port import UNNUMBERED, Attachment, Batch, Delivery

REFUSED_AT = 8
"""Input windows under way at which what a client says is refused: it was told to wait at one."""

MAX_SAID_BYTES = MAX_FRAME_BYTES - 1024
"""Of one message of a client, with what is around it on a link."""

RETRY_AFTER_S = 1.0
"""For who was about to be let in when its gateway lets go: another one answers at once."""


class RemoteSession:
    """One channel, at the end that opened it. A ``Joined``.

    Args:
        number: Of the channel.
        on_over: Called once, when nothing is said on the channel any more.
        on_opened: Called once, with why there is no session, or nothing.
    """

    __slots__ = (
        "_attachment",
        "_ended",
        "_is_full",
        "_let_go",
        "_limits",
        "_number",
        "_on_opened",
        "_on_over",
        "_outbox",
        "_over",
        "_taken",
        "_told_at",
        "_under_way",
        "_waiting",
        "_woken",
        "id",
    )

    def __init__(
        self,
        number: int,
        outbox: Outbox,
        limits: LinkSettings,
        on_over: Callable[[int], None],
        on_opened: Callable[[DuologueError | None], None] | None = None,
    ) -> None:
        self.id = ""
        self._number = number
        self._outbox = outbox
        self._limits = limits
        self._on_over = on_over
        self._on_opened = on_opened
        self._attachment: Attachment | None = None
        self._waiting: deque[tuple[Delivery, int]] = deque()
        self._woken = False
        self._under_way = 0
        """What was said and has not been dealt with, in bytes."""

        self._is_full = False
        self._over = False
        self._taken = 0
        """What was taken and the other end has not been told of; it sends on meanwhile."""

        self._told_at = limits.output_window_bytes // TOLD_PARTS
        self._ended: str | None = None
        self._let_go: ConnectionLetGo | None = None

    # SessionPort

    def attach(self, attachment: Attachment) -> None:
        """Make a connection the session's own."""
        self._attachment = attachment
        if not self._over:
            self._outbox.put(Attach(self._number))
        self.wake()

    def detach(self, attachment: Attachment) -> None:
        """The connection is gone."""
        if attachment is self._attachment:
            self._attachment = None
            self._leave(Detach(self._number))

    def offer(self, command: Command) -> None:
        """Say what the client said.

        Raises:
            MailboxFull: Far too much of it is under way.
            LimitExceeded: It is too long for a link.
        """
        if self._over:
            return
        if self._under_way >= REFUSED_AT * self._limits.input_window_bytes:
            raise MailboxFull(
                f"{self._under_way} bytes wait for the session, the limit is "
                f"{REFUSED_AT * self._limits.input_window_bytes}"
            )
        packed = pack_command(command)
        if weight(packed) > MAX_SAID_BYTES:
            raise LimitExceeded(
                f"a message of {weight(packed)} bytes is too long for the session host; the limit "
                f"is {MAX_SAID_BYTES}",
                code=ErrorCode.MESSAGE_TOO_LARGE,
            )
        self._under_way += weight(packed)
        self._outbox.put(Said(self._number, packed))
        if self._under_way >= self._limits.input_window_bytes and not self._is_full:
            self._is_full = True
            if self._attachment is not None:
                self._attachment.on_pressure(True)

    def reject(self, error: ErrorBody) -> None:
        """Say that the client said what is no command."""
        if not self._over:
            self._outbox.put(Misread(self._number, error))

    def played(self, item_id: str, played_ms: int) -> None:
        """Say how much of an item was played."""
        if not self._over:
            self._outbox.played(self._number, item_id, played_ms)

    def pull(self, max_bytes: int) -> Batch:
        """Return what may be written to the connection now."""
        deliveries: list[Delivery] = []
        waiting = self._waiting
        taken = 0
        while waiting and taken < max_bytes:
            delivery, size = waiting.popleft()
            deliveries.append(delivery)
            taken += size
        self._taken += taken
        if self._taken >= self._told_at and not self._over:
            self._outbox.taken(self._number, self._taken)
            self._taken = 0
        self._woken = bool(waiting)
        return Batch(deliveries, self._woken)

    def close(self, reason: str) -> None:
        """Nobody attaches any more."""
        self._leave(CloseChannel(self._number, reason))

    # From the link

    def receive(self, message: ToOpener) -> None:
        """Take what the other end says; ``wake`` follows when all that came with it was taken.

        Raises:
            msgspec.MsgspecError: It cannot be read.
        """
        match message:
            case ChannelOutput(events=events):
                for event in events:
                    delivery = Delivery(event.seq, unpack_event(event.event))
                    self._waiting.append((delivery, weight(event.event)))
            case Applied(size_bytes=size):
                self._dealt_with(size)
            case Silenced():
                self._silence(message)
            case Opened(session_id=session_id):
                self.id = session_id
                self._tell_opened(None)
            case Refused(fault=fault):
                exc = exception_of(fault)
                if not self._tell_opened(exc):
                    # The connection was there first: it is told like any other.
                    self._waiting.append((Delivery(UNNUMBERED, error_event(exc)), 0))
                self._end(exc.code)
            case ChannelEnded(reason=reason):
                self._end(reason)
            case ConnectionLetGo():
                self._let_go = message
                self._end(message.reason)

    def leave(self, reason: str) -> None:
        """Let go of the session; the connection ends, and may be made anew elsewhere."""
        if not self._over:
            self._outbox.put(Detach(self._number))
            self._tell_opened(
                CapacityError(
                    "this gateway lets its clients go",
                    code=ErrorCode.SHUTTING_DOWN,
                    retry_after_s=RETRY_AFTER_S,
                )
            )
            self._end(reason)
            self.wake()

    def lost(self) -> None:
        """There is no link any more."""
        if not self._over:
            exc = host_lost()
            if not self._tell_opened(exc):
                self._waiting.append((Delivery(UNNUMBERED, error_event(exc)), 0))
            self._end(exc.code)
            self.wake()

    def wake(self) -> None:
        """Tell the connection what there is."""
        attachment = self._attachment
        if attachment is None:
            return
        if self._let_go is not None:
            self._attachment = None
            self._waiting.clear()
            words = unpack_deliveries(self._let_go.last_words)
            attachment.on_let_go(self._let_go.reason, words)
            return
        if self._waiting and not self._woken:
            self._woken = True
            attachment.on_output()
        if self._ended is not None:
            self._attachment = None
            attachment.on_end(self._ended)

    def _dealt_with(self, size: int) -> None:
        self._under_way -= size
        if self._is_full and self._under_way <= self._limits.input_window_bytes // 2:
            self._is_full = False
            if self._attachment is not None:
                self._attachment.on_pressure(False)

    def _silence(self, message: Silenced) -> None:
        """Leave out sound. Its numbers stay: a gap in them would mean that something was lost."""
        for place, (delivery, size) in enumerate(self._waiting):
            event = delivery.event
            if (
                isinstance(event, AudioDelta)
                and delivery.seq < message.before_seq
                and message.item_id in ("", event.item_id)
                and event.response_id not in message.beside
            ):
                silent = msgspec.structs.replace(event, delta=b"")
                self._waiting[place] = (Delivery(delivery.seq, silent), size)

    def _tell_opened(self, exc: DuologueError | None) -> bool:
        told, self._on_opened = self._on_opened, None
        if told is not None:
            told(exc)
        return told is not None

    def _leave(self, last: Detach | CloseChannel) -> None:
        if not self._over:
            self._outbox.put(last)
            self._finish()

    def _end(self, reason: str) -> None:
        if not self._over:
            self._ended = reason
            self._finish()

    def _finish(self) -> None:
        self._over = True
        self._on_over(self._number)
