"""Requests that a client may send again: the same key gives the same answer, made once.

Pure: time is handed in. Answers are kept for a while, within bounds of number and bytes. This
module must not know requests.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from duologue.core.errors import ProtocolError
from duologue.protocol.errors import ErrorCode, refused

MAX_KEY_CHARS = 255


@dataclass(slots=True)
class _Entry:
    fingerprint: bytes
    answer: bytes | None
    since: float


class IdempotencyKeys:
    """Keys and the answers that belong to them.

    Args:
        keep_s: How long an answer is kept.
        max_keys: How many are kept; ``max_bytes``: of all answers together.
    """

    def __init__(self, keep_s: float, max_keys: int, max_bytes: int) -> None:
        self._keep_s = keep_s
        self._max_keys = max_keys
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self.bytes = 0

    def begin(self, key: str, fingerprint: bytes, now: float) -> bytes | None:
        """Return the answer to a request that was made before; ``None``: it is to be made now.

        Args:
            key: The client's, with whose it is.
            fingerprint: Of the whole request: the same key for another one is a mistake.

        Raises:
            ProtocolError: The key is in use for another request, or for this one, which is still
                being worked on.
        """
        self._forget(now)
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = _Entry(fingerprint, None, now)
            return None
        if entry.fingerprint != fingerprint:
            raise refused(
                "this Idempotency-Key was sent with another request; take a new one",
                "Idempotency-Key",
                ErrorCode.IDEMPOTENCY_KEY_REUSED,
            )
        if entry.answer is None:
            raise ProtocolError(
                "the request with this Idempotency-Key is still being worked on; come again later",
                code=ErrorCode.IDEMPOTENCY_IN_PROGRESS,
                param="Idempotency-Key",
            )
        return entry.answer

    def done(self, key: str, answer: bytes, now: float) -> None:
        """Keep the answer of a request."""
        entry = self._entries[key]
        entry.answer, entry.since = answer, now
        self._entries.move_to_end(key)
        self.bytes += len(answer)
        self._forget(now)

    def failed(self, key: str) -> None:
        """Forget a request that was not answered: it may be sent again."""
        entry = self._entries.pop(key, None)
        if entry is not None and entry.answer is not None:
            self.bytes -= len(entry.answer)

    def _forget(self, now: float) -> None:
        for key, entry in list(self._entries.items()):
            is_over = len(self._entries) > self._max_keys or self.bytes > self._max_bytes
            if entry.answer is not None and (is_over or now - entry.since > self._keep_s):
                self.failed(key)


def checked_key(given: str) -> str:
    """Return a key that may be used.

    Raises:
        ProtocolError: It is empty or too long.
    """
    if not 1 <= len(given) <= MAX_KEY_CHARS:
        raise refused(
            f"an Idempotency-Key has 1 to {MAX_KEY_CHARS} characters; this one has {len(given)}",
            "Idempotency-Key",
        )
    return given
