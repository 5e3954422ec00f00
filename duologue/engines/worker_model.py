"""The runner of a worker, from its loading on: it may sleep, and be dropped and loaded again.

This module must not know jobs, nor who orders what.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from duologue.core.clock import Clock
from duologue.core.errors import DuologueError, EngineError, OutOfMemory
from duologue.engines.arbiter.turns import Turns, Unshared
from duologue.engines.lifecycle_port import DROPPED, SLEEP_UNSUPPORTED
from duologue.engines.messages import Rested
from duologue.engines.runners.contract import Capturing, Runner, Sleeper
from duologue.engines.runners.registry import Built, Wake
from duologue.engines.worker_memory import Held, give_back, held

IMPORT, LOAD, CAPTURE, WARM_UP = "import", "load", "capture", "warm_up"
"""Phases of a start within the worker: its libraries, the weights, graphs, and the first steps."""

Announce: TypeAlias = Callable[[str], None]
"""Is told of each phase that begins."""

Load: TypeAlias = Callable[[Wake, Announce], Built]


class WorkerModel:
    """Holds the runner: nobody else may keep it, or its memory could not be let go.

    Args:
        load: Makes the runner, and announces its phases.
        measure: Returns what memory is held.
        share: Makes the runner's part in its device, where it shares one.
        pause: Waits for so many seconds.

    Concurrency:
        Belongs to the working thread.
    """

    def __init__(
        self,
        load: Load,
        wake: Wake,
        announce: Announce,
        clock: Clock,
        measure: Callable[[], Held] = held,
        share: Callable[[Runner], Turns] = lambda _runner: Unshared(),
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.runner: Runner | None = None
        self.turns: Turns = Unshared()
        """When it may step on its device."""
        self.wakes_itself = False
        self.level = DROPPED
        """Of its sleep; 0: it is awake."""
        self._levels: tuple[int, ...] = ()
        self._load = load
        self._wake = wake
        self._announce = announce
        self._clock = clock
        self._measure = measure
        self._share = share
        self._pause = pause

    def load(self) -> None:
        """Load the runner and warm it up.

        Raises:
            DuologueError: It cannot be; nothing of it is kept.
            MemoryError: Likewise.
        """
        built = self._load(self._wake, self._announce)
        self.turns = self._share(built.runner)
        try:
            self._claim()
            self._warm_up(built)
        except BaseException:
            self._leave_device()
            raise
        self.runner, self.wakes_itself, self._levels = built
        self.level = 0

    def _warm_up(self, built: Built) -> None:
        if isinstance(built.runner, Capturing):
            self._announce(CAPTURE)
            built.runner.capture()
        self._announce(WARM_UP)
        built.runner.warm_up()
        self.turns.warm()

    def _claim(self) -> None:
        """Wait until there is room on the device for what will be put there."""
        while (again_at := self.turns.claim(now := self._clock.now())) is not None:
            self._pause(again_at - now)

    def _leave_device(self) -> None:
        self.turns.leave()
        self.turns = Unshared()

    def sleep(self, level: int) -> Rested:
        """Let memory go, at this level or deeper."""
        return self._measured(lambda: self._sleep(level))

    def wake(self) -> Rested:
        """Be awake."""
        return self._measured(self._be_awake)

    def _measured(self, change: Callable[[], None]) -> Rested:
        began, before = self._clock.now(), self._measure()
        code = message = ""
        try:
            change()
        except DuologueError as exc:
            code, message = exc.code, exc.message
        except MemoryError:
            code, message = OutOfMemory.default_code, "no memory was left"
        give_back()
        after = self._measure()
        return Rested(
            self.level,
            before.resident_bytes - after.resident_bytes,
            before.device_bytes - after.device_bytes,
            self._clock.now() - began,
            code,
            message,
        )

    def _sleep(self, level: int) -> None:
        if self.runner is None or self.level >= level:
            return
        level = min((each for each in self._levels if each >= level), default=0)
        if not level:
            raise EngineError("this model cannot sleep", code=SLEEP_UNSUPPORTED)
        if isinstance(self.runner, Sleeper):
            self.runner.sleep(level)
        self._leave_device()
        if level == DROPPED:
            self.runner = None
        self.level = level

    def _be_awake(self) -> None:
        if self.level == DROPPED:
            self.load()
        elif self.level and self.runner is not None:
            self.turns = self._share(self.runner)
            try:
                self._claim()
                self._back_on_device(_sleeper(self.runner))
            except BaseException:
                self._leave_device()
                raise
            self.level = 0

    def _back_on_device(self, runner: Sleeper) -> None:
        runner.wake()
        try:
            self.turns.warm()
        except DuologueError:
            runner.sleep(self.level)
            raise


def _sleeper(runner: object) -> Sleeper:
    assert isinstance(runner, Sleeper), "only such a one sleeps at level 1"
    return runner
