from __future__ import annotations

from duologue.core.wheel import TimerWheel
from duologue.gateway.http.stalled import LOOKS, StalledClients
from tests.fakes.clock import FakeClock


class FakeTransport:
    def __init__(self, left: int) -> None:
        self.left = left
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.left

    def abort(self) -> None:
        self.aborted = True


class Scene:
    def __init__(self, *left: int) -> None:
        self.clock = FakeClock()
        wheel = TimerWheel(self.clock.call_at)
        self.clients = [FakeTransport(each) for each in left]
        self.watch = StalledClients(lambda: self.clients, self.clock, wheel, 60.0)
        self.watch.start()


def test_one_that_takes_nothing_is_let_go() -> None:
    scene = Scene(0, 70_000)
    scene.clock.advance(60)
    assert not scene.clients[1].aborted
    scene.clock.advance(6)
    assert [client.aborted for client in scene.clients] == [False, True]


def test_one_that_takes_a_little_now_and_then_stays() -> None:
    scene = Scene(70_000)
    for _ in range(10):
        scene.clock.advance(60 - 60 / LOOKS)
        scene.clients[0].left -= 1
    assert not scene.clients[0].aborted


def test_one_that_takes_nothing_is_let_go_though_it_is_sent_more() -> None:
    scene = Scene(70_000)
    for _ in range(13):
        scene.clients[0].left += 3  # the answer to a ping
        scene.clock.advance(60 / LOOKS)
    assert scene.clients[0].aborted


def test_after_the_end_nobody_looks() -> None:
    scene = Scene(70_000)
    scene.watch.stop()
    scene.clock.advance(200)
    assert not scene.clients[0].aborted
