from __future__ import annotations

from duologue.core.wheel import TimerWheel
from duologue.telemetry import Histogram, LoopLagProbe
from tests.fakes.clock import FakeClock


def make() -> tuple[FakeClock, LoopLagProbe, Histogram]:
    clock = FakeClock(now=10.003)
    lag = Histogram((0.001, 0.010, 0.100))
    return clock, LoopLagProbe(TimerWheel(clock.call_at), clock, lag), lag


def test_a_loop_in_time_shows_no_lag() -> None:
    clock, probe, lag = make()
    probe.start()
    clock.advance(2.0)
    assert lag.counts[1:] == [0, 0, 0]
    assert lag.counts[0] >= 7


def test_a_blocked_loop_shows_how_long_it_was_blocked() -> None:
    clock, probe, lag = make()
    probe.start()
    clock.stall(0.300)
    clock.advance(0)
    assert lag.counts == [0, 0, 1, 0]
    assert 0.040 < lag.sum < 0.060


def test_a_stopped_probe_leaves_the_wheel() -> None:
    clock, probe, lag = make()
    probe.start()
    probe.stop()
    clock.advance(2.0)
    assert sum(lag.counts) == 0
