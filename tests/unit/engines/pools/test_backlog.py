from __future__ import annotations

import pytest

from duologue.core.errors import EngineError
from duologue.engines.payload_base import OVERHEAD_BYTES
from duologue.engines.payloads import TextDelta
from duologue.engines.pools.backlog import TOO_MUCH_INPUT, Backlog
from duologue.protocol.errors import ERROR_TABLE, ErrorCode


def test_as_much_may_wait_as_the_limit_says() -> None:
    backlog = Backlog(2 * OVERHEAD_BYTES + 10)
    backlog.add(TextDelta("12345"))
    backlog.add(TextDelta("12345"))
    assert backlog.waiting_bytes == 2 * OVERHEAD_BYTES + 10
    with pytest.raises(EngineError, match=r"522 bytes of input wait .* 256 more .* limit of 522"):
        backlog.add(TextDelta(""))


def test_what_was_refused_does_not_count() -> None:
    backlog = Backlog(1000)
    with pytest.raises(EngineError):
        backlog.add(TextDelta("x" * 1000))
    assert backlog.waiting_bytes == 0
    backlog.add(TextDelta("x"))


def test_what_was_taken_makes_room() -> None:
    backlog = Backlog(1000)
    first = TextDelta("x" * 300)
    backlog.add(first)
    backlog.add(TextDelta("x"))
    backlog.take(first.size_bytes())
    assert backlog.waiting_bytes == OVERHEAD_BYTES + 1
    backlog.add(first)


def test_a_client_can_be_told_what_happened() -> None:
    assert ERROR_TABLE[ErrorCode(TOO_MUCH_INPUT)].retryable
