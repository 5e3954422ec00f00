"""Keeps messages of a job in order while the payload of one of them is still being read.

Pure. Messages of other jobs do not wait. This module must not know what reads payloads, nor
threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

M = TypeVar("M")


class Awaited(Generic[M]):
    """The place of a message whose payload is being read.

    Args:
        message: As it stands without its payload.
    """

    __slots__ = ("dropped", "found", "job", "message")

    def __init__(self, job: str, message: M) -> None:
        self.job = job
        self.message = message
        self.found: Sequence[M] | None = None
        self.dropped = False
        """Nobody wants it any more."""


class InOrder(Generic[M]):
    """What waits, by job. Its senders bound how much: by credit, and by the room for payloads."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Awaited[M]]] = {}

    @property
    def is_idle(self) -> bool:
        """Nothing is awaited, so nothing can be in the way of a message."""
        return not self._waiting

    def await_payload(self, job: str, message: M) -> Awaited[M]:
        """A message has come whose payload must be read first."""
        awaited = Awaited(job, message)
        self._waiting.setdefault(job, deque()).append(awaited)
        return awaited

    def pass_on(self, job: str, message: M) -> list[M]:
        """Return a message that is whole, or keep it behind what its job waits for."""
        if job not in self._waiting:
            return [message]
        kept = self.await_payload(job, message)
        kept.found = (message,)
        return []

    def came(self, awaited: Awaited[M], found: Sequence[M]) -> list[M]:
        """A payload was read, or could not be; returns what may be passed on now."""
        if awaited.dropped:
            return []
        awaited.found = found
        waiting = self._waiting[awaited.job]
        ready: list[M] = []
        while waiting and waiting[0].found is not None:
            ready += waiting.popleft().found or ()
        if not waiting:
            del self._waiting[awaited.job]
        return ready

    def drop(self, job: str) -> list[M]:
        """Forget all of a job; returns its messages, without payloads that were not read."""
        dropped = self._waiting.pop(job, ())
        for each in dropped:
            each.dropped = True
        return [each.message for each in dropped]

    def drop_all(self) -> None:
        """Forget everything."""
        for job in list(self._waiting):
            self.drop(job)
