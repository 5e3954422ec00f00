"""How much one job may have waiting: a request that sends too much costs only itself.

This module must not know where a job is, nor what becomes of one that sends too much.
"""

from __future__ import annotations

from duologue.core.errors import EngineError
from duologue.engines.payloads import Payload

TOO_MUCH_INPUT = "rate_limited"
"""Whether the caller sends too fast or the model is too slow: the same, sent slower, may work."""


class InputAllowance:
    """Counts the input of one job that was sent, and that no step has taken as far as is known."""

    __slots__ = ("_limit_bytes", "waiting_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.waiting_bytes = 0
        self._limit_bytes = limit_bytes

    def add(self, payload: Payload) -> None:
        """Count an input that is about to be sent.

        Raises:
            EngineError: It is one too many, and was not counted.
        """
        size = payload.size_bytes()
        if self.waiting_bytes + size > self._limit_bytes:
            raise EngineError(
                f"{self.waiting_bytes} bytes of input wait for a step, and {size} more are over "
                f"the limit of {self._limit_bytes}; send more slowly, or raise max_input_bytes",
                code=TOO_MUCH_INPUT,
            )
        self.waiting_bytes += size

    def take(self, size_bytes: int) -> None:
        """Steps have taken this much."""
        self.waiting_bytes -= size_bytes
