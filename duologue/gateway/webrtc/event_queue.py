"""Events on their way to one reader, numbered anew for it, within a bound.

A call has several readers: its data channel, and whoever looks on. This module must not know what
the events mean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from duologue.core.errors import LimitExceeded
from duologue.gateway.webrtc.peer import LOW_WATER_BYTES, Peer
from duologue.protocol.commands import Command
from duologue.protocol.dialect import Dialect
from duologue.protocol.errors import ErrorCode, error_body, over_limit
from duologue.protocol.events import ErrorBody, ErrorEvent, Event
from duologue.sessions.port import Attachment, Batch, Delivery

MAX_WAITING_BYTES = 256 * 1024
"""For the data channel. A reader that has so much to catch up with gets no more for now."""

MAX_WAITING_EVENTS = 1024
"""For one who looks on; past it he is sent away, since the call waits for nobody but the caller."""


class ChannelWriter:
    """Writes events to the data channel, as fast as it takes them.

    Args:
        max_message_bytes: What the peer takes at a time.
    """

    def __init__(self, peer: Peer, dialect: Dialect, max_message_bytes: int) -> None:
        self.waiting_bytes = 0
        self._peer = peer
        self._encode = dialect.encode_event
        self._max_message_bytes = max_message_bytes
        self._waiting: deque[bytes] = deque()
        self._seq = 0

    @property
    def is_full(self) -> bool:
        """Enough waits."""
        return self.waiting_bytes >= MAX_WAITING_BYTES

    def put(self, event: Event) -> None:
        """Send an event, or let it wait behind those before it."""
        message = self._encode(event, self._seq + 1)
        if message is None:
            return
        if len(message) > self._max_message_bytes:
            too_long = over_limit(
                "an event for you", len(message), self._max_message_bytes, "max-message-size"
            )
            message = self._encode(ErrorEvent(error=error_body(_coded(too_long))), self._seq + 1)
            assert message is not None
        self._seq += 1
        self._waiting.append(message)
        self.waiting_bytes += len(message)
        self.flush()

    def flush(self) -> None:
        """Write what the channel takes now."""
        while self._waiting and self._peer.buffered_bytes() < LOW_WATER_BYTES:
            message = self._waiting.popleft()
            self.waiting_bytes -= len(message)
            self._peer.send_message(message)

    @property
    def is_empty(self) -> bool:
        """All that was put in has gone out."""
        return not self._waiting and not self._peer.buffered_bytes()


class Observer:
    """One who looks on from a WebSocket and may say something; a ``SessionPort`` for it.

    Args:
        accept: Takes what he says; raises ``ClientError`` as a session does.
        leave: Called once when he goes.
    """

    def __init__(
        self,
        call_id: str,
        accept: Callable[[Command], None],
        leave: Callable[[Observer], None],
    ) -> None:
        self.id = call_id
        self._accept = accept
        self._leave = leave
        self._waiting: deque[Delivery] = deque()
        self._seq = 0
        self._attachment: Attachment | None = None
        self._woken = False
        self._ended: str | None = None

    # For the call

    def put(self, event: Event) -> None:
        """Show him an event. He is sent away when too many wait."""
        if self._ended is not None:
            return
        self._seq += 1
        self._waiting.append(Delivery(self._seq, event))
        if len(self._waiting) > MAX_WAITING_EVENTS:
            self.close(ErrorCode.CLIENT_TOO_SLOW)
        else:
            self._wake()

    def close(self, reason: str) -> None:
        """The call is over, or he is."""
        if self._ended is None:
            self._ended = reason
            self._leave(self)
            if self._attachment is not None:
                self._attachment.on_end(reason)

    # SessionPort

    def attach(self, attachment: Attachment) -> None:
        """His connection is there."""
        self._attachment = attachment
        self._wake()
        if self._ended is not None:
            attachment.on_end(self._ended)

    def detach(self, _attachment: Attachment) -> None:
        """His connection is gone; the call goes on."""
        self._attachment = None
        self.close("closed")

    def offer(self, command: Command) -> None:
        """Hand in what he says."""
        self._accept(command)

    def reject(self, error: ErrorBody) -> None:
        """Answer what is no command; the caller does not hear of it."""
        self.put(ErrorEvent(error=error))

    def played(self, item_id: str, played_ms: int) -> None:
        """Nothing: the call plays, not he."""

    def pull(self, max_bytes: int) -> Batch:
        """Return what may be written to his connection; events are small, so all of it."""
        deliveries, self._waiting = list(self._waiting), deque()
        self._woken = False
        return Batch(deliveries, False)

    def _wake(self) -> None:
        if self._waiting and self._attachment is not None and not self._woken:
            self._woken = True
            self._attachment.on_output()


def _coded(error: LimitExceeded) -> LimitExceeded:
    return LimitExceeded(error.message, code=ErrorCode.MESSAGE_TOO_LARGE, param=error.param)
