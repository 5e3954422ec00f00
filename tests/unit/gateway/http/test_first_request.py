from __future__ import annotations

from duologue.core.wheel import TimerWheel
from duologue.gateway.http.first_request import FirstRequests
from tests.fakes.clock import FakeClock


class FakeTransport:
    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


class Scene:
    def __init__(self, connections: int) -> None:
        self.clock = FakeClock()
        self.wheel = TimerWheel(self.clock.call_at)
        self.waiting = [FakeTransport() for _ in range(connections)]
        self.watch = FirstRequests(lambda: self.waiting, self.clock, self.wheel, 20.0)
        self.watch.start()


def test_one_that_asks_for_nothing_is_let_go_and_one_that_came_later_has_its_time() -> None:
    scene = Scene(1)
    scene.clock.advance(15)
    first, late = scene.waiting[0], FakeTransport()
    scene.waiting.append(late)
    scene.clock.advance(10)
    assert first.aborted
    assert not late.aborted
    scene.waiting.remove(first)
    scene.clock.advance(20)
    assert late.aborted


def test_one_that_has_asked_stays() -> None:
    scene = Scene(1)
    scene.clock.advance(15)
    (asked,) = scene.waiting
    scene.waiting.clear()
    scene.clock.advance(100)
    assert not asked.aborted


def test_after_the_end_nobody_looks() -> None:
    scene = Scene(1)
    scene.watch.stop()
    scene.clock.advance(100)
    assert not scene.waiting[0].aborted
    assert len(scene.wheel) == 0
