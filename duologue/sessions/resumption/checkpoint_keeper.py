"""Keeps checkpoints up to date: looks now and then which conversations have changed.

A look costs a comparison for each session; what has changed is written by one thread, the latest
state of each session alone. This module must not know what is in a file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from duologue.core.clock import Clock
from duologue.core.tasks import CrashBarrier
from duologue.core.wheel import TimerWheel
from duologue.sessions.resumption.checkpoints import CheckpointFolder, checkpoint_of
from duologue.sessions.resumption.past import Kept
from duologue.sessions.session import Session
from duologue.telemetry import get_logger

LOOK_S = 0.5
PER_LOOK = 64
BUSY_S = 0.002
"""Sessions that are written at a look, and how long that may hold the loop; the others are first at
the next one."""


class CheckpointKeeper:
    """One for all sessions of a process; on the wheel.

    Args:
        sessions: Returns those that are open.
        per_look: So many are written at a look at most.

    Concurrency:
        Belongs to the event loop; files are written in a thread, in order.
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        sessions: Callable[[], Iterable[Session]],
        clock: Clock,
        wheel: TimerWheel,
        *,
        per_look: int = PER_LOOK,
    ) -> None:
        self._folder = folder
        self._per_look = per_look
        self._sessions = sessions
        self._clock = clock
        self._wheel = wheel
        self._seen: dict[str, tuple[object, ...]] = {}
        self._barrier = CrashBarrier(self._not_made)
        self._loaded: list[str] = []
        self._forget_at = 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")
        self._writing: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Look now and then, until ``stop``."""
        self._wheel.set(self, self._clock.now() + LOOK_S)

    async def load(self, grace_s: float) -> list[Kept]:
        """Return what an earlier process has left; it is removed when its time is over."""
        checkpoints = await asyncio.to_thread(self._folder.load, self._clock.wall_time())
        self._loaded = [each.inheritance.session_id for each in checkpoints]
        self._forget_at = self._clock.now() + grace_s
        return [each.kept(self._forget_at) for each in checkpoints]

    async def stop(self) -> None:
        """Look once more, and wait until all is written."""
        self._wheel.set(self, None)
        if self._writing is not None:
            await self._writing
        self._look(is_last=True)
        if self._writing is not None:
            await self._writing
        self._thread.shutdown(wait=False)

    def on_timer(self) -> None:
        """The wheel's call."""
        # Set first: whatever a look may come to, there is a next one.
        self._wheel.set(self, self._clock.now() + LOOK_S)
        if self._writing is None or self._writing.done():
            self._look()

    def _look(self, *, is_last: bool = False) -> None:
        wall_time = self._clock.wall_time()
        open_now: dict[str, Session] = {
            session.id: session for session in self._sessions() if session.lease is not None
        }
        gone = [session_id for session_id in self._seen if session_id not in open_now]
        if self._loaded and self._clock.now() >= self._forget_at:
            gone += self._loaded
            self._loaded = []
        changed: list[tuple[str, bytes]] = []
        # Those that were never written first, then those that were written longest ago.
        unseen = [session_id for session_id in open_now if session_id not in self._seen]
        began = self._clock.now()
        for session_id in [*unseen, *(each for each in self._seen if each in open_now)]:
            session = open_now[session_id]
            state = _state(session)
            if self._seen.get(session_id) == state:
                continue
            data = self._barrier.run(lambda each: checkpoint_of(each, wall_time), session)
            # Seen also where it failed: it is tried again, and told again, when there is a change.
            self._seen.pop(session_id, None)
            self._seen[session_id] = state
            if data is not None:
                changed.append((session_id, data))
            if not is_last and (
                len(changed) >= self._per_look or self._clock.now() - began >= BUSY_S
            ):
                break
        for session_id in gone:
            self._seen.pop(session_id, None)
        if changed or gone:
            loop = asyncio.get_running_loop()
            self._writing = loop.run_in_executor(self._thread, self._write, changed, gone)

    def _not_made(self, exc: Exception) -> None:
        """A bug of ours, or what no file can hold; it costs no other session its own."""
        get_logger("checkpoints").error("checkpoint_failed", exc_info=exc)

    def _write(self, changed: list[tuple[str, bytes]], gone: list[str]) -> None:
        for session_id, data in changed:
            self._folder.write(session_id, data)
        for session_id in gone:
            self._folder.remove(session_id)


def _state(session: Session) -> tuple[object, ...]:
    """What of a session its checkpoint depends on."""
    lease = session.lease
    tokens = None if lease is None else lease.tokens.hashes
    machine = session.machine
    return machine.history.changes, len(machine.history), tokens, machine.config
