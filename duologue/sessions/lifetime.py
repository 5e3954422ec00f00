"""The lifetime: how old a session may be, and whether its client takes what there is.

Says when something is due; while nobody is connected, only age counts. This module must not know
what is done about it.
"""

from __future__ import annotations

import math

from duologue.core.running_timeout import RunningTimeout
from duologue.sessions.settings import SessionSettings

LEAVING_CHECK_S = 0.25
"""How often it is looked whether the last answer is over, once the age limit is reached."""


class Lifetime:
    """The clocks of one session.

    Args:
        warns: The client can be told that its time is running out.
        tick_ms: How often the model wants a beat; ``None``: never.
    """

    __slots__ = (
        "_checked_at",
        "_detached_at",
        "_grace_s",
        "_opened_at",
        "_stall",
        "_tick_s",
        "_warns_at",
        "expires_at",
        "leaving",
        "resumable",
        "ticks",
        "waiting_since",
    )

    def __init__(
        self, settings: SessionSettings, now: float, tick_ms: int | None, warns: bool
    ) -> None:
        self.expires_at = now + settings.max_duration_s
        self.waiting_since: float | None = None
        """Since when there is something for the client that it has not taken; whoever knows of
        something, or sees it taken, sets it. An attribute, since both happen for every frame."""

        self.leaving = False
        """The age limit is reached: no new answer begins."""

        self.resumable = False
        """The session may outlive its connection."""

        self.ticks = 0
        """Beats so far."""

        self._opened_at = now
        self._tick_s = None if tick_ms is None else tick_ms / 1000
        self._stall = RunningTimeout(settings.stall_limit_s)
        self._grace_s = settings.expiry_grace_s
        self._checked_at = -math.inf
        self._warns_at = math.inf
        if warns and settings.expiry_warning_s:
            self._warns_at = max(now, self.expires_at - settings.expiry_warning_s)
        self._detached_at: float | None = None

    @property
    def detached(self) -> bool:
        """Nobody is connected."""
        return self._detached_at is not None

    def detach(self, now: float) -> None:
        """The connection is lost: nobody is blamed for taking nothing, and no beats come."""
        self._detached_at = now
        self.waiting_since = None

    def attach(self, now: float) -> None:
        """Another connection has come; the beats go on where they stopped."""
        if self._detached_at is not None:
            self._opened_at += now - self._detached_at
        self._detached_at = None
        self.waiting_since = None

    def warning_due(self, now: float) -> bool:
        """Tell, once, that the client should know how little time is left."""
        if now < self._warns_at:
            return False
        self._warns_at = math.inf
        return True

    def over(self, now: float, *, answering: bool) -> bool:
        """Tell whether the session must end for its age.

        Args:
            answering: Something is still being said.
        """
        if now < self.expires_at:
            return False
        self.leaving = True
        self._checked_at = now
        return not answering or now >= self.expires_at + self._grace_s

    def stalled(self, now: float) -> bool:
        """Tell whether the client has taken nothing for too long, though there is something.

        While this process stood still it was given nothing: such time does not count.
        """
        since = None if self._detached_at is not None else self.waiting_since
        return since is not None and self._stall.is_over(since, now)

    def beat(self, now: float) -> bool:
        """Tell whether another beat is due, and count it."""
        if self._tick_s is None or now < self._next_tick():
            return False
        self.ticks += 1
        return True

    def next_deadline(self) -> float:
        """When to ask again. Asked for each frame."""
        deadline = self.expires_at if self._warns_at == math.inf else self._warns_at
        if self.leaving:
            deadline = min(self.expires_at + self._grace_s, self._checked_at + LEAVING_CHECK_S)
        if self._tick_s is not None:
            deadline = min(deadline, self._next_tick())
        since = self.waiting_since
        if since is not None and self._detached_at is None:
            return min(deadline, self._stall.due_at(since))
        return deadline

    # One expression for the deadline, since a sum and a difference are rounded differently.

    def _next_tick(self) -> float:
        if self._tick_s is None or self._detached_at is not None:
            return math.inf
        return self._opened_at + (self.ticks + 1) * self._tick_s
