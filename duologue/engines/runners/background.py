"""Jobs whose outputs are made by a thread of their own: how those reach the worker's steps.

For runners that wait for something else than their inputs: a library with threads of its own, a
server elsewhere. They are of the kind that wakes itself. This module must not know what is made.
"""

from __future__ import annotations

import threading
from collections import deque

from duologue.core.errors import EngineError
from duologue.engines.payloads import Payload, TextDelta
from duologue.engines.runners.contract import Step
from duologue.engines.runners.registry import Wake


class OutputFeed:
    """The outputs of one job, from the thread that makes them to the worker.

    Args:
        wake: Called when there is news.
        capacity: How many outputs may wait for a step before ``put`` does.

    Concurrency:
        One thread puts, ends and fails; the worker's thread takes and stops.
    """

    def __init__(self, wake: Wake, capacity: int) -> None:
        self._wake = wake
        self._capacity = capacity
        self._outputs: deque[Payload] = deque()
        self._room = threading.Condition()
        self._over = False
        self._error: EngineError | None = None
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Nobody wants more of it."""
        return self._stopped

    def put(self, output: Payload) -> None:
        """Hand an output over. Waits while too many have not been taken."""
        with self._room:
            self._room.wait_for(lambda: len(self._outputs) < self._capacity or self._stopped)
            if self._stopped:
                return
            self._outputs.append(output)
        self._wake()

    def end(self, error: EngineError | None = None) -> None:
        """Say that nothing follows, and why if it should not be so. Only the first call counts."""
        if not self._over:
            self._error = error
            self._over = True
            self._wake()

    def stop(self) -> None:
        """Want no more; what waits is dropped."""
        with self._room:
            self._stopped = True
            self._outputs.clear()
            self._room.notify_all()

    def has_news(self) -> bool:
        """Tell whether ``take`` would return anything."""
        return bool(self._outputs) or self._over

    def take(self, most: int | None = None) -> Step:
        """Return what has been made since the last call; text is merged.

        Args:
            most: Only so many outputs.
        """
        over = self._over  # before the outputs: what is put before the end must not be lost
        outputs: list[Payload] = []
        with self._room:
            while self._outputs and (most is None or len(outputs) < most):
                output = self._outputs.popleft()
                if isinstance(output, TextDelta) and outputs and isinstance(outputs[-1], TextDelta):
                    output = TextDelta(outputs.pop().text + output.text)  # type: ignore[union-attr]
                outputs.append(output)
            done = over and not self._outputs
            self._room.notify_all()
        return Step(outputs, done=done and self._error is None, error=self._error if done else None)
