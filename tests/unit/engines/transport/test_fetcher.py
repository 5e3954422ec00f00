from __future__ import annotations

import threading
from collections.abc import Callable

from duologue.core.clock import Clock
from duologue.core.errors import EngineError, StageTimeout
from duologue.engines.transport.fetcher import Fetcher, Get
from duologue.engines.transport.port import Handle
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

HANDLE = Handle("somewhere", 0, 1, 4)


class PatientReader:
    """Finds nothing, and gives up as readers do; says so to whoever waits for it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.reading = threading.Event()
        self.closed = threading.Event()
        self.thread = threading.get_ident()
        self.patience = threading.Event()

    def get(self, handle: Handle, deadline: float) -> bytes:
        assert threading.get_ident() == self.thread
        self.reading.set()
        while self.clock.now() < deadline:
            self.patience.wait(0.001)
        raise StageTimeout(f"too late for {deadline}")

    def close(self) -> None:
        self.closed.set()


class Want:
    def __init__(self) -> None:
        self.dropped = False
        self.said: list[str] = []
        self.done = threading.Event()

    def read(self, get: Get) -> None:
        try:
            get(HANDLE)
        except EngineError as exc:
            self.said.append(exc.message)
        self.done.set()


class Scene:
    def __init__(self, kind: type[PatientReader] = PatientReader) -> None:
        self.kind = kind
        self.clock = FakeClock(100.0)
        self.opened = threading.Event()
        self.fetcher = Fetcher("reader", self._open, 5.0, self.clock)

    def _open(self, clock: Clock) -> PatientReader:
        self.reader = self.kind(clock)
        self.opened.set()
        return self.reader

    def fetch(self) -> Want:
        want = Want()
        self.fetcher.fetch(want, want.read)
        return want

    def reading(self) -> None:
        assert self.opened.wait(PATIENCE_S)
        assert self.reader.reading.wait(PATIENCE_S)

    def close(self) -> None:
        self.fetcher.close()
        assert self.reader.closed.wait(PATIENCE_S)


def after(event: threading.Event, act: Callable[[], None]) -> None:
    assert event.wait(PATIENCE_S)
    act()


def test_each_read_has_a_deadline_of_its_own() -> None:
    scene = Scene()
    first = scene.fetch()
    scene.reading()
    assert not first.done.is_set()
    scene.clock.advance(5.0)
    after(first.done, scene.reader.reading.clear)
    second = scene.fetch()
    scene.reading()
    assert not second.done.is_set()
    scene.clock.advance(5.0)
    assert second.done.wait(PATIENCE_S)
    assert first.said == ["too late for 105.0"]
    assert second.said == ["too late for 110.0"]
    scene.close()


def test_what_nobody_wants_any_more_is_given_up_at_once_and_said_so() -> None:
    scene = Scene()
    first, second = scene.fetch(), scene.fetch()
    scene.reading()
    second.dropped = True
    first.dropped = True
    assert second.done.wait(PATIENCE_S)
    assert first.said == ["too late for 105.0"]
    assert second.said == ["nobody waits for it any more"]
    scene.close()


def test_where_reads_go_on_when_they_were_given_up_somebody_sees_to_their_end() -> None:
    settled = threading.Event()
    deadlines: list[float] = []

    class Lingering(PatientReader):
        def settle(self, deadline: float) -> None:
            assert self.clock.now() < deadline, "there is time for that"
            deadlines.append(deadline)
            settled.set()

    scene = Scene(Lingering)
    first = scene.fetch()
    scene.reading()
    first.dropped = True
    assert settled.wait(PATIENCE_S)
    assert deadlines == [105.0]
    scene.close()


def test_closing_gives_up_what_is_being_read_and_reads_nothing_more() -> None:
    scene = Scene()
    first, second = scene.fetch(), scene.fetch()
    scene.reading()
    scene.close()
    assert first.done.is_set()
    assert not second.done.is_set()
    assert scene.fetcher.wall_time() == scene.clock.wall_time()


def test_one_that_was_never_used_has_no_thread() -> None:
    def opened(_clock: Clock) -> PatientReader:
        raise AssertionError("nobody asked for anything")

    threads = threading.active_count()
    fetcher = Fetcher("reader", opened, 5.0)
    fetcher.close()
    assert threading.active_count() == threads
