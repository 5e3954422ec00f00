from __future__ import annotations

import pytest

from duologue.protocol.errors import ErrorCode
from duologue.sessions.resumption.lease import Lease
from duologue.sessions.resumption.past import REMEMBERED, PastSessions


@pytest.mark.parametrize(
    ("session_id", "token", "code"),
    [
        ("closed", "a", ErrorCode.RESUME_CONFLICT),
        ("expired", "b", ErrorCode.RESUME_EXPIRED),
        ("closed", "b", ErrorCode.INVALID_RESUME_TOKEN),
        ("expired", "a", ErrorCode.INVALID_RESUME_TOKEN),
        ("never was", "a", ErrorCode.INVALID_RESUME_TOKEN),
    ],
)
def test_only_who_has_the_token_learns_what_became_of_a_session(
    session_id: str, token: str, code: str
) -> None:
    past = PastSessions()
    past.add("closed", Lease("a", 30), expired=False)
    past.add("expired", Lease("b", 30), expired=True)
    assert past.refusal(session_id, token).code == code


def test_strangers_cannot_tell_a_past_session_from_none() -> None:
    past = PastSessions()
    past.add("closed", Lease("a", 30), expired=False)
    one, other = past.refusal("closed", "?"), past.refusal("never was", "?")
    assert (one.message, one.param, one.details) == (other.message, other.param, other.details)


def test_not_all_are_remembered() -> None:
    past = PastSessions()
    lease = Lease("a", 30)
    for number in range(REMEMBERED + 1):
        past.add(str(number), lease, expired=True)
    assert len(past) == REMEMBERED
    assert past.refusal("0", "a").code == ErrorCode.INVALID_RESUME_TOKEN
    assert past.refusal("1", "a").code == ErrorCode.RESUME_EXPIRED
