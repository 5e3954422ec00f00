from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.sessions.owners import ANYBODY
from duologue.sessions.resumption.ticket import RESUMED, TAKEN_OVER
from tests.fakes.call import FakeCall, FakeConnection
from tests.fakes.plugin import FakePlugin


def made() -> FakeCall:
    return FakeCall(FakePlugin(), patch=DuplexPatch(), resumable=True)


def outcomes(call: FakeCall) -> dict[str, float]:
    return {name: count.value for name, count in call.metrics.resumes if count.value}


def test_a_ticket_that_is_not_used_changes_nothing() -> None:
    call = made()
    call.manager.claim(call.session.id, call.client.token, ANYBODY, 0)
    assert call.client.ended is None
    assert call.session.lease is not None
    assert call.session.lease.generation == 1
    assert outcomes(call) == {}


def test_of_two_tickets_the_first_that_is_used_counts() -> None:
    call = made()
    token = call.client.token
    tickets = [call.manager.claim(call.session.id, token, ANYBODY, 2) for _ in range(2)]
    assert tickets[1].use(FakeConnection(call.session)) is call.session
    with pytest.raises(ProtocolError) as refused:
        tickets[0].use(FakeConnection(call.session))
    assert refused.value.code == "session_resume_conflict"
    assert outcomes(call) == {TAKEN_OVER: 1, "session_resume_conflict": 1}


def test_a_session_that_waited_is_resumed() -> None:
    call = made()
    call.lose()
    call.resume()
    assert outcomes(call) == {RESUMED: 1}


def test_a_ticket_for_a_session_that_is_over_is_void() -> None:
    call = made()
    ticket = call.manager.claim(call.session.id, call.client.token, ANYBODY, 0)
    call.session.close("closed")
    with pytest.raises(ProtocolError):
        ticket.use(FakeConnection(call.session))
