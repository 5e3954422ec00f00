from __future__ import annotations

import gc
import weakref

import pytest

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.arbiter.turns import Unshared
from duologue.engines.messages import Rested
from duologue.engines.runners.registry import Built, Wake
from duologue.engines.worker_memory import Held
from duologue.engines.worker_model import Announce, WorkerModel
from tests.fakes.clock import FakeClock
from tests.unit.engines.worker_scene import EchoRunner


class Dozing(EchoRunner):
    """Can keep its weights."""

    refusal: EngineError | MemoryError | None = None

    def sleep(self, level: int) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.calls.append(f"sleep {level}")

    def wake(self) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.calls.append("wake")


class Graphed(EchoRunner):
    """Makes graphs."""

    def capture(self) -> None:
        self.calls.append("capture")


class Scene:
    """A model that takes a second and 100 bytes to load, with 10 on a device."""

    def __init__(self, kind: type[EchoRunner] = EchoRunner, levels: tuple[int, ...] = (2,)) -> None:
        self.clock = FakeClock()
        self.phases: list[str] = []
        self.made: list[EchoRunner] = []
        self.unloadable: Exception | None = None
        self.kind, self.levels = kind, levels
        self.model = WorkerModel(
            self.load, lambda: None, self.phases.append, self.clock, self.measure
        )

    def load(self, wake: Wake, announce: Announce) -> Built:
        announce("load")
        self.clock.advance(1)
        if self.unloadable is not None:
            raise self.unloadable
        self.made.append(self.kind())
        return Built(self.made[-1], False, self.levels)

    def measure(self) -> Held:
        awake = 100 if self.model.level == 0 else 30 if self.model.level == 1 else 0
        return Held(1000 + awake, 10 if self.model.level == 0 else 0)


def test_a_runner_is_loaded_and_warmed_up_phase_by_phase() -> None:
    scene = Scene()
    scene.model.load()
    assert scene.phases == ["load", "warm_up"]
    assert scene.made[0].calls == ["warm_up"]
    assert scene.model.level == 0


def test_graphs_are_a_phase_of_their_own() -> None:
    scene = Scene(Graphed)
    scene.model.load()
    assert scene.phases == ["load", "capture", "warm_up"]
    assert scene.made[0].calls == ["capture", "warm_up"]


def test_asleep_at_level_2_nothing_holds_the_runner_and_it_is_loaded_anew() -> None:
    scene = Scene()
    scene.model.load()
    seen = weakref.ref(scene.made.pop())
    assert scene.model.sleep(2) == Rested(2, freed_bytes=100, device_freed_bytes=10)
    gc.collect()
    assert seen() is None
    assert scene.model.wake() == Rested(0, -100, -10, took_s=1.0)
    assert scene.made[0].calls == ["warm_up"]


def test_asleep_at_level_1_the_runner_keeps_its_weights() -> None:
    scene = Scene(Dozing, (1, 2))
    scene.model.load()
    assert scene.model.sleep(1) == Rested(1, 70, 10)
    assert scene.model.wake() == Rested(0, -70, -10)
    assert scene.made[0].calls == ["warm_up", "sleep 1", "wake"]
    scene.model.sleep(1)
    assert scene.model.sleep(2) == Rested(2, 30, 0)
    assert scene.model.runner is None


def test_who_cannot_keep_weights_apart_sleeps_deeper_and_says_so() -> None:
    scene = Scene()
    scene.model.load()
    assert scene.model.sleep(1).level == 2


def test_who_cannot_sleep_says_so_and_stays_awake() -> None:
    scene = Scene(levels=())
    scene.model.load()
    rested = scene.model.sleep(2)
    assert (rested.level, rested.code) == (0, "sleep_unsupported")
    assert scene.model.runner is scene.made[0]


def test_asking_again_changes_nothing() -> None:
    scene = Scene()
    scene.model.load()
    assert scene.model.wake() == Rested(0)
    scene.model.sleep(2)
    assert scene.model.sleep(1) == Rested(2)
    assert len(scene.made) == 1


@pytest.mark.parametrize(
    ("refusal", "code"),
    [(EngineError("busy", code="stage_failed"), "stage_failed"), (MemoryError(), "out_of_memory")],
)
def test_what_fails_leaves_it_as_it_was(refusal: EngineError | MemoryError, code: str) -> None:
    scene = Scene(Dozing, (1, 2))
    scene.model.load()
    runner = scene.made[0]
    assert isinstance(runner, Dozing)
    runner.refusal = refusal
    assert (scene.model.sleep(1).code, scene.model.level) == (code, 0)
    runner.refusal = None
    scene.model.sleep(1)
    runner.refusal = refusal
    assert (scene.model.wake().code, scene.model.level) == (code, 1)
    runner.refusal = None
    assert scene.model.wake() == Rested(0, -70, -10)


def test_weights_that_are_gone_at_wake_leave_it_asleep_and_it_can_be_tried_again() -> None:
    scene = Scene()
    scene.model.load()
    scene.model.sleep(2)
    scene.unloadable = ConfigError("there is no file")
    rested = scene.model.wake()
    assert (rested.level, rested.code, rested.message) == (2, "invalid_config", "there is no file")
    scene.unloadable = None
    assert scene.model.wake().level == 0


class Seat(Unshared):
    """A part in a device that others use, too."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.refusal: ConfigError | None = None
        self.unclaimable: ConfigError | None = None

    def claim(self, now: float) -> float | None:
        if self.unclaimable is not None:
            raise self.unclaimable
        return None

    def warm(self) -> None:
        self.calls.append("warm")
        if self.refusal is not None:
            raise self.refusal

    def leave(self) -> None:
        self.calls.append("leave")


@pytest.mark.parametrize("level", [1, 2])
def test_asleep_it_holds_no_part_of_its_device_and_one_that_finds_none_sleeps_on(
    level: int,
) -> None:
    scene, seat = Scene(Dozing, (1, 2)), Seat()
    scene.model = WorkerModel(
        *(scene.load, lambda: None, scene.phases.append, scene.clock, scene.measure),
        share=lambda _runner: seat,
    )
    scene.model.load()
    scene.model.sleep(level)
    seat.refusal = ConfigError("too little time is left on this device")
    rested = scene.model.wake()
    assert (rested.level, rested.code) == (level, "invalid_config")
    seat.refusal = None
    assert scene.model.wake().level == 0
    assert seat.calls == ["warm", "leave", "warm", "leave", "warm"]
    assert scene.model.turns is seat


class Full(Seat):
    """There is room for it at the third time of asking."""

    def __init__(self, calls: list[str]) -> None:
        super().__init__()
        self.calls = calls
        self.asked = 0

    def claim(self, now: float) -> float | None:
        self.asked += 1
        self.calls.append("claim")
        return None if self.asked % 3 == 0 else now + 0.5


@pytest.mark.parametrize("level", [1, 2])
def test_nothing_is_put_on_a_device_before_there_is_room(level: int) -> None:
    scene = Scene(Dozing, (1, 2))

    def share(runner: object) -> Full:
        assert isinstance(runner, Dozing)
        return Full(runner.calls)

    scene.model = WorkerModel(
        *(scene.load, lambda: None, scene.phases.append, scene.clock, scene.measure),
        share=share,
        pause=scene.clock.advance,
    )
    scene.model.load()
    assert scene.made[0].calls == ["claim", "claim", "claim", "warm_up", "warm"]
    scene.model.sleep(level)
    scene.made[-1].calls.clear()
    rested = scene.model.wake()
    assert (rested.level, rested.took_s) == (0, 1.0 if level == 1 else 2.0)
    woken = "wake" if level == 1 else "warm_up"
    assert scene.made[-1].calls == ["claim", "claim", "claim", woken, "warm"]


def test_one_that_cannot_have_room_sleeps_on_and_was_not_woken() -> None:
    scene = Scene(Dozing, (1, 2))
    seat = Seat()
    scene.model = WorkerModel(
        *(scene.load, lambda: None, scene.phases.append, scene.clock, scene.measure),
        share=lambda _runner: seat,
    )
    scene.model.load()
    scene.model.sleep(1)
    seat.unclaimable = ConfigError("no room is left on this device")
    assert (scene.model.wake().message, scene.model.level) == (seat.unclaimable.message, 1)
    assert scene.made[0].calls == ["warm_up", "sleep 1"]
    assert seat.calls == ["warm", "leave", "leave"]


def test_one_that_starts_asleep_loads_when_it_wakes() -> None:
    scene = Scene()
    assert scene.model.sleep(1) == Rested(2)
    assert scene.made == []
    assert scene.model.wake().level == 0
