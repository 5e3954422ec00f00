from __future__ import annotations

import pytest

from duologue.core.errors import (
    AuthError,
    CapacityError,
    ClientError,
    DuologueError,
    EngineError,
    LimitExceeded,
    ProtocolError,
    RateLimited,
    StageTimeout,
    UnknownSession,
)
from duologue.core.mailbox import MailboxFull
from duologue.hosts.faults import exception_of, fault_of, host_lost
from duologue.protocol.errors import ERROR_TABLE, ErrorCode


@pytest.mark.parametrize(
    "exc",
    [
        ClientError("no", code="invalid_value", param="session.voice"),
        AuthError("no"),
        LimitExceeded("no", param="audio"),
        ProtocolError("no", code="invalid_value"),
        UnknownSession("no"),
        CapacityError("full", retry_after_s=2.5),
        RateLimited("often", retry_after_s=1.5, code="too_many_sessions"),
        EngineError("failed", code="out_of_memory"),
        DuologueError("broke", code="plugin_error"),
    ],
)
def test_an_exception_is_the_same_at_the_other_end(exc: DuologueError) -> None:
    again = exception_of(fault_of(exc))
    assert type(again) is type(exc)
    assert (again.message, again.code) == (exc.message, exc.code)
    for name in ("param", "retry_after_s"):
        assert getattr(again, name, None) == getattr(exc, name, None)


@pytest.mark.parametrize(
    ("exc", "kind"),
    [(MailboxFull("full"), LimitExceeded), (StageTimeout("late"), EngineError)],
)
def test_a_special_one_arrives_as_what_it_is_a_kind_of(
    exc: DuologueError, kind: type[DuologueError]
) -> None:
    again = exception_of(fault_of(exc))
    assert type(again) is kind
    assert again.code == exc.code


def test_a_lost_host_is_no_fault_of_the_client_and_worth_another_attempt() -> None:
    exc = host_lost()
    assert exc.retry_after_s > 0
    row = ERROR_TABLE[ErrorCode(exc.code)]
    assert (row.http_status, row.close_code) == (503, 1012)
