"""A limit of requests per minute. It must not know whose requests they are."""

from __future__ import annotations


class RateLimit:
    """A bucket of a minute's worth of requests that fills up evenly.

    Args:
        per_minute: So many may come at once, and so many in each minute that follows.
        now: Seconds on the caller's clock, as everywhere below.
    """

    def __init__(self, per_minute: int, now: float) -> None:
        self.per_minute = per_minute
        self._per_s = per_minute / 60
        self._left = float(per_minute)
        self._counted_at = now

    def take(self, now: float) -> float:
        """Take one request out of the bucket.

        Returns:
            0 if there was one, else in how many seconds there will be; nothing was taken then.
        """
        self._left = min(self.per_minute, self._left + (now - self._counted_at) * self._per_s)
        self._counted_at = now
        if self._left < 1:
            return (1 - self._left) / self._per_s
        self._left -= 1
        return 0.0
