"""A session that outlives its connection: it waits for another one, and goes on with that.

Adds to a session who drives it, what is kept until the client has it, and what the next connection
is told. This module must not decide who may come, nor how long anybody is waited for.
"""

from __future__ import annotations

import math

from duologue.protocol.errors import ErrorCode
from duologue.sessions.machine import SessionMachine
from duologue.sessions.port import UNNUMBERED, Attachment, Delivery
from duologue.sessions.resumption.lease import Claim, Lease
from duologue.sessions.resumption.resumption import Resumption
from duologue.sessions.resumption.silence import sound_under_way
from duologue.sessions.session import Session, Surroundings


class ResumableSession(Session):
    """As its base, and resumable."""

    __slots__ = ("_resumption", "journal", "lease")

    lease: Lease

    def __init__(
        self, machine: SessionMachine, around: Surroundings, resumption: Resumption
    ) -> None:
        super().__init__(machine, around)
        self._resumption = resumption
        self.lease = resumption.lease
        self.journal = resumption.journal

    def claim(self, token: str, received: int | None = None) -> Claim:
        """Check whether a connection may take the session over. Changes nothing.

        Args:
            received: The number of the latest event that it has; ``None``: it does not say.

        Raises:
            AuthError: The token is wrong.
            ProtocolError: It cannot be resumed in this way.
        """
        claim = self._resumption.lease.claim(token)
        if received is not None:
            self._resumption.check(received, self._seq)
        return claim

    def resume(self, attachment: Attachment, claim: Claim, received: int | None = None) -> None:
        """Let a connection take the session over; the one before is told to end.

        Raises:
            ProtocolError: Another one was quicker, or the session is over. Nothing changed.
        """
        resumption = self._resumption
        was_detached = resumption.lease.is_detached
        last_words = resumption.take(claim, received, self._now(), self._seq, self.last_event_id)
        if was_detached:
            self._observer.detached(-1)
        earlier, self._attachment = self._attachment, attachment
        self.machine.heard_by(sound_under_way(attachment))
        self._woken = False
        if earlier is not None:
            words = [] if last_words is None else [Delivery(UNNUMBERED, last_words)]
            earlier.on_let_go(ErrorCode.STALE_LEASE, words)
        self._wake_and_rearm()

    def on_timer(self) -> None:
        """Apply the passage of time; nobody may have come in it."""
        if self._resumption.lease.is_expired(self._now()):
            self._timer_at = math.inf
            self.close(ErrorCode.RESUME_EXPIRED)
        else:
            super().on_timer()

    def _lose_connection(self) -> None:
        self._attachment = None
        self._woken = False
        now = self._now()
        lease = self._resumption.lease
        lease.detach(lease.generation, now)
        self.machine.detach(now)
        self._observer.detached(1)
        self._wake_and_rearm()

    def _let_go(self, reason: str) -> None:
        attachment = self._attachment
        if attachment is not None:
            self._lose_connection()
            attachment.on_let_go(reason, ())

    def _acknowledge(self, seq: int) -> None:
        super()._acknowledge(seq)
        if self.machine.ended is None:
            self._resumption.on_acknowledged(seq)

    def _has_output(self) -> bool:
        return self._resumption.due or self.machine.speaking.has_output()

    def _next_deadline(self) -> float:
        return min(super()._next_deadline(), self._resumption.lease.due_at())

    def _take_output(self, max_bytes: int) -> list[Delivery]:
        if self._resumption.due:
            return self._take_what_comes_first(max_bytes)
        deliveries = super()._take_output(max_bytes)
        self._resumption.deliver(deliveries)
        return deliveries

    def _take_what_comes_first(self, max_bytes: int) -> list[Delivery]:
        deliveries = self._resumption.pull(max_bytes, self._now(), latest=self._seq)
        self._seq = max([self._seq, *(each.seq for each in deliveries)])
        return deliveries

    def _set_timer(self) -> None:
        if self.journal is not None and (self._woken or self._attachment is None):
            self.journal.fit()  # what waits to be taken is in the same account
        super()._set_timer()

    def _end(self, reason: str) -> None:
        if self._resumption.lease.is_detached:
            self._observer.detached(-1)
        self._resumption.end(attached=self._attachment is not None)
        super()._end(reason)
