"""A session whose end fails keeps its place until it has ended."""

from __future__ import annotations

from structlog.testing import capture_logs

from duologue.core.wheel import TimerWheel
from duologue.protocol.commands import CreateResponse
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.sessions.watching.reaper import PERIOD_S, Reaper
from duologue.telemetry import Counter
from tests.fakes.call import FakeCall
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin


class Stubborn:
    """Can be let go of after some attempts."""

    id = "sess_1"

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.attempts = 0

    def finish(self) -> None:
        self.attempts += 1
        if self.attempts <= self.failures:
            raise OSError("not yet")


def test_it_is_tried_again_until_it_works_and_then_no_more() -> None:
    clock, reaped = FakeClock(), Counter()
    wheel = TimerWheel(clock.call_at)
    reaper = Reaper(clock, wheel, reaped)
    session = Stubborn(failures=2)
    with capture_logs() as logs:
        reaper.add(session, OSError("the first time"))
        clock.advance(10 * PERIOD_S)
    assert (session.attempts, len(reaper), len(wheel), reaped.value) == (3, 0, 0, 1)
    events = [line["event"] for line in logs]
    assert events == [*["session_end_failed"] * 3, "session_reaped"]


class BrokenEngine(FakeEngine):
    """Cannot cancel for a while."""

    is_broken = True

    def cancel(self, request_id: str) -> None:
        if self.is_broken:
            raise RuntimeError("a bug in letting go")
        super().cancel(request_id)


def test_a_session_that_cannot_be_let_go_of_holds_its_place_until_it_can() -> None:
    engine = BrokenEngine(pipelines=(STAGE,))
    call = FakeCall(FakePlugin(), engine, patch=DuplexPatch(), resumable=True)
    call.send(CreateResponse())
    (stage,) = engine.of(STAGE)
    call.session.close("closed")
    call.clock.advance(3 * PERIOD_S)
    assert len(call.manager) == 1, "something may still run for it"
    assert call.metrics.sessions_active.value == 1
    engine.is_broken = False
    call.clock.advance(PERIOD_S)
    assert stage.cancelled
    assert len(call.manager) == 0
    tuple(call.manager.note_fills())
    assert call.metrics.sessions_active.value == call.metrics.journal_bytes.value == 0
    assert call.metrics.sessions_reaped.value == 1
    assert call.client.ended == "closed"
    assert len(call.wheel) == 0


def test_what_was_only_announced_is_done_as_soon_as_it_can_be() -> None:
    class BrokenOnce(BrokenEngine):
        def cancel(self, request_id: str) -> None:
            was_broken, self.is_broken = self.is_broken, False
            if was_broken:
                raise RuntimeError("a bug in letting go")
            super().cancel(request_id)

    engine = BrokenOnce(pipelines=(STAGE,))
    call = FakeCall(FakePlugin(), engine)
    call.send(CreateResponse())
    (stage,) = engine.of(STAGE)
    call.session.close("closed")
    assert stage.cancelled
    assert len(call.manager) == 0
    assert call.metrics.sessions_reaped.value == 0
