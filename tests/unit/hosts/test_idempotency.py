from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from duologue.core.errors import ProtocolError
from duologue.hosts.idempotency import IdempotencyKeys, checked_key


def test_the_same_request_gets_the_same_answer() -> None:
    keys = IdempotencyKeys(60, 8, 1000)
    assert keys.begin("a", b"1", 0) is None
    keys.done("a", b"answer", 1)
    assert keys.begin("a", b"1", 2) == b"answer"


def test_one_that_is_worked_on_is_not_begun_again() -> None:
    keys = IdempotencyKeys(60, 8, 1000)
    keys.begin("a", b"1", 0)
    with pytest.raises(ProtocolError) as refused:
        keys.begin("a", b"1", 1)
    assert refused.value.code == "idempotency_in_progress"


def test_a_key_belongs_to_one_request() -> None:
    keys = IdempotencyKeys(60, 8, 1000)
    keys.begin("a", b"1", 0)
    with pytest.raises(ProtocolError) as refused:
        keys.begin("a", b"2", 1)
    assert refused.value.code == "idempotency_key_reused"


def test_what_failed_may_be_tried_again() -> None:
    keys = IdempotencyKeys(60, 8, 1000)
    keys.begin("a", b"1", 0)
    keys.failed("a")
    assert keys.begin("a", b"2", 1) is None


def test_an_answer_is_forgotten_after_a_while() -> None:
    keys = IdempotencyKeys(60, 8, 1000)
    keys.begin("a", b"1", 0)
    keys.done("a", b"answer", 0)
    assert keys.begin("a", b"1", 61) is None
    assert keys.bytes == 0


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_keys_have_a_length(key: str) -> None:
    with pytest.raises(ProtocolError):
        checked_key(key)


class Keys(RuleBasedStateMachine):
    """What is kept stays within its bounds, whatever the order of events."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = IdempotencyKeys(50, 4, 100)
        self.working: set[str] = set()
        self.now = 0.0

    @rule(key=st.sampled_from("abcdef"), passed=st.floats(0, 30))
    def begin(self, key: str, passed: float) -> None:
        self.now += passed
        if key not in self.working and self.keys.begin(key, b"1", self.now) is None:
            self.working.add(key)

    @rule(size=st.integers(0, 60), fails=st.booleans())
    def end(self, size: int, fails: bool) -> None:
        if self.working:
            key = self.working.pop()
            if fails:
                self.keys.failed(key)
            else:
                self.keys.done(key, bytes(size), self.now)

    @invariant()
    def bounds_hold(self) -> None:
        kept = [each for each in self.keys._entries.values() if each.answer is not None]
        assert self.keys.bytes == sum(len(each.answer or b"") for each in kept) <= 100
        assert len(kept) <= 4 + len(self.working)


TestKeys = Keys.TestCase
