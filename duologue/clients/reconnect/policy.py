"""How a lost connection is noticed and how it is dialled again: the numbers, and the waits.

This module must not know connections or events.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconnectPolicy:
    """What a call does about a lost connection.

    Args:
        silence_s: A connection on which nothing comes for so long, though the server was asked
            for a sign of life, is dead.
        give_up_s: How long a call goes on trying. Servers keep a session for some time only
            (``sessions.disconnect_grace_s``), and say so when they have not.
        attempt_timeout_s: How long one attempt may take.
        first_wait_s: The longest wait before the first attempt. A fraction of it is waited, so
            that all callers of a server that has restarted do not come back at once.
        longest_wait_s: The waits double up to here.
        kept_bytes: Audio that is kept while there is no connection, and audio that was sent and
            that the server has not said it has: so much of each. The oldest goes first. As PCM at
            24 kHz it is 20 s.
    """

    silence_s: float = 5.0
    give_up_s: float = 45.0
    attempt_timeout_s: float = 5.0
    first_wait_s: float = 0.2
    longest_wait_s: float = 5.0
    kept_bytes: int = 960_000

    def __post_init__(self) -> None:
        """Refuse what would never end, or never begin.

        Raises:
            ValueError: A number is not above zero.
        """
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}, it must be above 0")


RECONNECT = ReconnectPolicy()
"""For calls of people: an outage is noticed in 5 s, and attempts last longer than servers wait."""


class Backoff:
    """The waits between attempts of one outage.

    Args:
        dice: For the jitter.
        now: When the connection was lost.
    """

    def __init__(self, policy: ReconnectPolicy, dice: random.Random, now: float) -> None:
        self.attempts = 0
        """Attempts that were begun."""

        self.lost_at = now
        self.gives_up_at = now + policy.give_up_s
        self._policy = policy
        self._dice = dice

    def next_wait(self, now: float, at_least_s: float = 0.0) -> float | None:
        """Return how long to wait before the next attempt; ``None``: give up.

        Args:
            at_least_s: What the server has asked for. Longer waits than a client's own are granted.
        """
        if now >= self.gives_up_at:
            return None
        policy, attempt = self._policy, self.attempts
        self.attempts += 1
        # An outage is short or long: no power of two that matters is above 32.
        longest = min(policy.longest_wait_s, policy.first_wait_s * 2 ** min(attempt, 32))
        # Between half and all of it, but for the first: most outages are over at once.
        least = longest / 2 if attempt else 0.0
        wait_s = max(self._dice.uniform(least, longest), at_least_s)
        return min(wait_s, self.gives_up_at - now)
