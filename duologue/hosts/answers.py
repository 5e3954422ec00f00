"""Answers that a later request refers to, at whichever gateway it comes.

By the idempotency key of a request that is sent again, or by the id of what was said. This module
must not know requests.
"""

from __future__ import annotations

from typing import Protocol

from duologue.core.clock import Clock
from duologue.hosts.idempotency import IdempotencyKeys
from duologue.hosts.spoken_answers import SpokenAnswers


class AnswersPort(Protocol):
    """What a gateway sees of them.

    Concurrency:
        Belongs to the event loop.
    """

    async def begin(self, key: str, fingerprint: bytes) -> bytes | None:
        """Return the answer to a request that was made before; ``None``: it is to be made now.

        Who is given none calls ``done`` or ``failed``.

        Raises:
            ProtocolError: As ``IdempotencyKeys.begin``.
            CapacityError: Whoever keeps them cannot be reached.
        """
        ...

    async def done(self, key: str, answer: bytes) -> None:
        """Keep the answer of a request."""
        ...

    def failed(self, key: str) -> None:
        """Forget a request that was not answered: it may be sent again."""
        ...

    async def keep_spoken(self, answer_id: str, text: str, expires_at: int) -> None:
        """Remember what was said, until a Unix time at most."""
        ...

    async def spoken(self, answer_id: str) -> str | None:
        """Return what was said, unless it was forgotten.

        Raises:
            CapacityError: Whoever keeps it cannot be reached.
        """
        ...


class LocalAnswers:
    """An ``AnswersPort`` on this process's memory."""

    def __init__(self, keys: IdempotencyKeys, said: SpokenAnswers, clock: Clock) -> None:
        self._keys = keys
        self._said = said
        self._clock = clock

    async def begin(self, key: str, fingerprint: bytes) -> bytes | None:
        """Return the answer to a request that was made before; ``None``: it is to be made now."""
        return self._keys.begin(key, fingerprint, self._clock.now())

    async def done(self, key: str, answer: bytes) -> None:
        """Keep the answer of a request."""
        self._keys.done(key, answer, self._clock.now())

    def failed(self, key: str) -> None:
        """Forget a request that was not answered."""
        self._keys.failed(key)

    async def keep_spoken(self, answer_id: str, text: str, expires_at: int) -> None:
        """Remember what was said."""
        self._said.keep(answer_id, text, expires_at)

    async def spoken(self, answer_id: str) -> str | None:
        """Return what was said, unless it was forgotten."""
        return self._said.get(answer_id, self._clock.wall_time())
