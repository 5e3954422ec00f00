"""The lease: generations, the grace period, and the token that opens it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from duologue.core.errors import AuthError, ClientError, ProtocolError
from duologue.protocol.errors import ErrorCode
from duologue.sessions.resumption import lease as module
from duologue.sessions.resumption.lease import Claim, Lease, LeaseState, new_token, refuse_unknown

GRACE_S = 30.0
T = 100.0


def code_of(refused: Callable[[], object]) -> str:
    with pytest.raises(ClientError) as caught:
        refused()
    return str(caught.value.code)


def expiry(lease: Lease) -> float:
    """When it expires, if it is looked at whenever it wants to be."""
    while not lease.is_expired(now := lease.due_at()):
        assert lease.due_at() > now
    return now


def test_a_lost_connection_starts_the_grace_period_and_another_one_ends_it() -> None:
    lease = Lease("first", GRACE_S)
    assert lease.due_at() == math.inf
    assert lease.detach(1, T)
    assert lease.state is LeaseState.DETACHED
    assert expiry(lease) == T + GRACE_S
    assert lease.take(lease.claim("first"), "second") == 2
    assert (lease.state, lease.due_at()) == (LeaseState.ATTACHED, math.inf)
    assert not lease.is_expired(T + 1e6)


def test_nobody_is_late_while_the_process_that_lets_them_in_stands_still() -> None:
    lease = Lease("first", GRACE_S)
    lease.detach(1, T)
    assert not lease.is_expired(T + 1)
    assert not lease.is_expired(T + 40)
    assert expiry(lease) > T + 40 + GRACE_S - 5


def test_the_connection_that_was_replaced_cannot_start_the_grace_period() -> None:
    lease = Lease("first", GRACE_S)
    lease.take(lease.claim("first"), "second")
    assert not lease.detach(1, T)
    assert lease.state is LeaseState.ATTACHED


@pytest.mark.parametrize("detached", [False, True])
def test_a_take_over_that_is_given_up_leaves_everything_as_it_was(detached: bool) -> None:
    lease = Lease("first", GRACE_S)
    if detached:
        lease.detach(1, T)
    before = (lease.state, lease.generation, lease.due_at())
    lease.claim("first")
    assert (lease.state, lease.generation, lease.due_at()) == before
    assert lease.claim("first").generation == 1


def test_of_two_claims_one_is_made_good() -> None:
    lease = Lease("first", GRACE_S)
    one, other = lease.claim("first"), lease.claim("first")
    lease.take(other, "second")
    assert code_of(lambda: lease.take(one, "third")) == ErrorCode.RESUME_CONFLICT
    assert lease.generation == 2
    lease.tokens.confirm()
    assert lease.claim("second").generation == 2


def test_no_claim_is_made_good_after_the_end() -> None:
    lease = Lease("first", GRACE_S)
    claim = lease.claim("first")
    lease.end()
    with pytest.raises(ProtocolError):
        lease.take(claim, "second")
    assert lease.due_at() == math.inf


def test_the_used_token_is_good_until_the_client_has_shown_that_it_has_the_next() -> None:
    lease = Lease("first", GRACE_S)
    lease.take(lease.claim("first"), "lost on the way")
    lease.take(lease.claim("first"), "third")
    assert code_of(lambda: lease.claim("lost on the way")) == ErrorCode.INVALID_RESUME_TOKEN
    lease.tokens.confirm()
    assert code_of(lambda: lease.claim("first")) == ErrorCode.INVALID_RESUME_TOKEN
    lease.claim("third")


def test_only_the_hash_of_a_token_is_kept_and_it_is_compared_in_constant_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lease = Lease("a secret", GRACE_S)
    kept = [getattr(lease.tokens, name) for name in lease.tokens.__slots__]
    assert all(isinstance(value, bytes) and b"secret" not in value for value in kept)
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr(module.hmac, "compare_digest", compare)
    code_of(lambda: lease.claim("b secret"))
    lease.claim("a secret")
    # Both are looked at each time, whichever matches.
    assert len(compared) == 4


def test_an_unknown_session_is_refused_as_a_wrong_token_is() -> None:
    with pytest.raises(AuthError) as wrong:
        Lease("first", GRACE_S).claim("second")
    unknown = refuse_unknown("second")
    assert (unknown.code, unknown.message) == (wrong.value.code, wrong.value.message)


def test_nothing_opens_a_lease_by_accident() -> None:
    lease = Lease("first", GRACE_S)
    for shown in ("", "\0", "first ", "x" * 10_000, "\ud800"):
        assert code_of(lambda shown=shown: lease.claim(shown)) == ErrorCode.INVALID_RESUME_TOKEN


def test_tokens_are_long_and_different() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) >= 40


class LeaseModel(RuleBasedStateMachine):
    """Whatever comes in whatever order: one connection drives, and only the token opens."""

    def __init__(self) -> None:
        super().__init__()
        self.now = T
        self.count = 0
        self.given = ["token 0"]
        self.good = {"token 0"}
        self.lease = Lease("token 0", GRACE_S)
        self.claims: list[Claim] = []
        self.driver: int | None = 1
        self.left_at = math.inf

    @rule(dt=st.floats(0, 20))
    def time_passes(self, dt: float) -> None:
        self.now += dt

    @rule(which=st.integers(0, 5))
    def a_connection_is_lost(self, which: int) -> None:
        generation = max(1, self.lease.generation - which)
        held = self.driver == generation
        assert self.lease.detach(generation, self.now) is held
        if held:
            self.driver, self.left_at = None, self.now

    @rule(which=st.integers(0, 5))
    def somebody_shows_a_token(self, which: int) -> None:
        token = self.given[-1 - which % len(self.given)]
        if token in self.good:
            self.claims.append(self.lease.claim(token))
        else:
            with pytest.raises(AuthError):
                self.lease.claim(token)

    @precondition(lambda self: self.claims)
    @rule(which=st.integers(0, 5))
    def a_claim_is_made_good(self, which: int) -> None:
        claim = self.claims[-1 - which % len(self.claims)]
        self.count += 1
        token = f"token {self.count}"
        before = (self.lease.state, self.lease.generation, self.lease.due_at())
        shown = next(t for t in self.given if self._digest_of(t) == claim.digest)
        void = claim.generation != before[1] or shown not in self.good
        if void or self.lease.state is LeaseState.ENDED:
            with pytest.raises(ProtocolError):
                self.lease.take(claim, token)
            assert (self.lease.state, self.lease.generation, self.lease.due_at()) == before
            return
        self.driver = self.lease.take(claim, token)
        assert self.driver == before[1] + 1
        self.good = {shown, token}
        self.given.append(token)
        assert len(self.good) <= 2

    def _digest_of(self, token: str) -> bytes:
        return hashlib.sha256(token.encode()).digest()

    @rule()
    def the_client_has_the_token(self) -> None:
        self.lease.tokens.confirm()
        self.good = {self.given[-1]}

    @precondition(lambda self: self.count > 5)
    @rule()
    def the_session_ends(self) -> None:
        self.lease.end()
        self.driver = None

    @invariant()
    def the_clock_runs_only_while_nobody_drives(self) -> None:
        if self.lease.state is LeaseState.DETACHED:
            assert self.driver is None
            assert self.left_at < self.lease.due_at() <= self.left_at + GRACE_S
        else:
            assert self.lease.due_at() == math.inf
        assert (self.driver is not None) is (self.lease.state is LeaseState.ATTACHED)


TestLeaseState = LeaseModel.TestCase
