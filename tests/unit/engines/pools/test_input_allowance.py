from __future__ import annotations

import pytest

from duologue.core.errors import EngineError
from duologue.engines.payload_base import OVERHEAD_BYTES
from duologue.engines.payloads import TextDelta
from duologue.engines.pools.input_allowance import TOO_MUCH_INPUT, InputAllowance
from duologue.protocol.errors import ERROR_TABLE, ErrorCode


def test_as_much_may_wait_as_the_limit_says() -> None:
    allowance = InputAllowance(2 * OVERHEAD_BYTES + 10)
    allowance.add(TextDelta("12345"))
    allowance.add(TextDelta("12345"))
    assert allowance.waiting_bytes == 2 * OVERHEAD_BYTES + 10
    with pytest.raises(EngineError, match=r"522 bytes of input wait .* 256 more .* limit of 522"):
        allowance.add(TextDelta(""))


def test_what_was_refused_does_not_count() -> None:
    allowance = InputAllowance(1000)
    with pytest.raises(EngineError):
        allowance.add(TextDelta("x" * 1000))
    assert allowance.waiting_bytes == 0
    allowance.add(TextDelta("x"))


def test_what_was_taken_makes_room() -> None:
    allowance = InputAllowance(1000)
    first = TextDelta("x" * 300)
    allowance.add(first)
    allowance.add(TextDelta("x"))
    allowance.take(first.size_bytes())
    assert allowance.waiting_bytes == OVERHEAD_BYTES + 1
    allowance.add(first)


def test_a_client_can_be_told_what_happened() -> None:
    assert ERROR_TABLE[ErrorCode(TOO_MUCH_INPUT)].retryable
