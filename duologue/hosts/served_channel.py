"""One channel at the end where the session is: the session's ``Attachment``.

Pulls as much as the other end has room for, before anybody there asks. This module must not know
sockets, nor what a session is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from duologue.core.errors import ClientError
from duologue.hosts.messages import (
    Attach,
    ChannelEnded,
    ChannelOutput,
    CloseChannel,
    ConnectionLetGo,
    Detach,
    Misread,
    Played,
    Said,
    Silenced,
    Taken,
    ToServer,
)
from duologue.hosts.outbox import Outbox
from duologue.hosts.packing import pack_deliveries, unpack_command, weight
from duologue.hosts.settings import TOLD_PARTS, LinkSettings
from duologue.protocol.errors import error_body
from duologue.sessions.port import CallsBackSound, Delivery, Joined
from duologue.sessions.session import CLIENT_GONE

PULL_BYTES = 16 * 1024
"""What is taken from a session at a time, at most."""


class ServedChannel(CallsBackSound):
    """One channel.

    Args:
        number: Of the channel, as the other end counts.
        on_over: Called once, when nothing is said on the channel any more.
    """

    __slots__ = (
        "_applied",
        "_attached",
        "_behind",
        "_number",
        "_on_over",
        "_outbox",
        "_over",
        "_port",
        "_room",
        "_seq",
        "_told_at",
    )

    def __init__(
        self,
        number: int,
        port: Joined,
        outbox: Outbox,
        limits: LinkSettings,
        on_over: Callable[[int], None],
    ) -> None:
        self._number = number
        self._port = port
        self._outbox = outbox
        self._on_over = on_over
        self._room = limits.output_window_bytes
        self._applied = 0
        """What was dealt with and the other end has not been told of; it sends on meanwhile."""

        self._told_at = limits.input_window_bytes // TOLD_PARTS
        self._seq = 0
        """Number of the latest event that was sent."""

        self._attached = False
        self._behind = False
        self._over = False

    # From the link

    def receive(self, message: ToServer) -> None:
        """Take what the other end says.

        Raises:
            msgspec.MsgspecError: It cannot be read.
        """
        port = self._port
        match message:
            case Said(command=packed):
                command = unpack_command(packed)
                try:
                    port.offer(command)
                except ClientError as exc:
                    port.reject(error_body(exc, command.event_id))
                self._applied += weight(packed)
                if self._applied >= self._told_at:
                    self._outbox.applied(self._number, self._applied)
                    self._applied = 0
            case Taken(size_bytes=size):
                self._room += size
                self.go_on()
            case Played(item_id=item_id, played_ms=played_ms):
                port.played(item_id, played_ms)
            case Attach():
                self._attached = True
                port.attach(self)
            case Misread(error=error):
                port.reject(error)
            case Detach():
                self._finish()
                port.detach(self)
            case CloseChannel(reason=reason):
                self._finish()
                port.close(reason)

    def go_on(self) -> None:
        """There is room again, in the window or in the link."""
        if self._behind:
            self._send()

    def lost(self) -> None:
        """There is no link any more: for the session, its client's connection is gone."""
        self._finish()
        if self._attached:
            self._port.detach(self)
        else:
            self._port.close(CLIENT_GONE)

    # Attachment

    def on_output(self) -> None:
        """Send what there is, as far as there is room."""
        self._send()

    def on_end(self, reason: str) -> None:
        """The session is over. It may be in the midst of something, so it is pulled later."""
        self._outbox.before_write(lambda: self._end(reason))

    def on_let_go(self, reason: str, last_words: Sequence[Delivery]) -> None:
        """The session goes on without this connection."""
        if not self._over:
            self._outbox.put(ConnectionLetGo(self._number, reason, pack_deliveries(last_words)))
            self._finish()

    def on_pressure(self, _on: bool) -> None:
        """The session is itself far away and has had too much; it refuses what is still more."""

    def on_silenced(self, item_id: str, beside: Collection[str] = ()) -> None:
        """Tell the other end to leave out sound that waits there."""
        if not self._over:
            message = Silenced(self._number, item_id, self._seq + 1, tuple(beside))
            self._outbox.put(message)

    def _send(self) -> None:
        while self._room > 0 and self._outbox.writable and not self._over:
            batch = self._port.pull(min(self._room, PULL_BYTES))
            self._put(batch.deliveries)
            if not batch.more:
                self._behind = False
                return
        self._behind = True

    def _end(self, reason: str) -> None:
        """What is left goes with the end, whatever room there is: one output buffer at most."""
        more = not self._over
        while more:
            batch = self._port.pull(PULL_BYTES)
            self._put(batch.deliveries)
            more = batch.more and bool(batch.deliveries)
        if not self._over:
            self._outbox.put(ChannelEnded(self._number, reason))
            self._finish()

    def _put(self, deliveries: list[Delivery]) -> None:
        if not deliveries:
            return
        events = pack_deliveries(deliveries)
        self._room -= sum(weight(event.event) for event in events)
        self._seq = max(self._seq, deliveries[-1].seq)
        self._outbox.put(ChannelOutput(self._number, events))

    def _finish(self) -> None:
        if not self._over:
            self._over = True
            self._on_over(self._number)
