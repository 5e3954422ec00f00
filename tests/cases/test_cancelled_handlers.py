"""C51, injected: the task that serves a connection is cancelled at each of its waits, in turn.

Whatever that task was waiting for, a place is free again or the session waits for its client, the
engine has let go of the work, and the next call is answered.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest

from duologue.engines.orchestrator.engine import Engine
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.manager import SessionManager
from duologue.sessions.settings import SessionSettings
from tests.cases.test_lost_connections import resumed
from tests.fakes.edged_gateway import edged_gateway
from tests.faults.gateway_line import (
    COMMIT,
    CREATE,
    LONG,
    SHORT,
    UPDATE,
    append,
    line_settings,
    serving,
    take_turn,
    until,
)
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import TEXT, UPGRADE, RawWebSocket, connected

SERVES, HANDLES = "RequestHandler._handle_request", "RealtimeEndpoint.handle"
"""The coroutine that aiohttp runs for each request, and our handler in it."""

FEWEST_WAITS = {"callback": 1, "loop": 5, "edge": 2}
"""For the end of the call; for each message, too; for the session, too."""

PATHS = {
    "realtime": f"/v1/realtime?model={LONG}",
    "duplex": f"/v1/duplex?model={LONG}&autostart=0",
}
MANUAL = {
    "realtime": {"type": "realtime", "audio": {"input": {"turn_detection": None}}},
    "duplex": {"turn_detection": None},
}
LAST_WORDS = {
    "realtime": {"type": "input_audio_buffer.clear"},
    "duplex": {"type": "session.close"},
}
ONE_PLACE = SessionSettings(max_sessions=1)


class Cancelling:
    """Cancels the task of a connection at the n-th wait of our handler in it."""

    def __init__(self) -> None:
        self.at = 0
        """Which wait; 0: none."""

        self.waits = 0

    def make_task(
        self, loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **how: Any
    ) -> asyncio.Task[Any]:
        """Make a task, as the loop's factory."""
        if coro.__qualname__ == SERVES and self.at:
            coro = self._watched(coro)
        return asyncio.Task(coro, loop=loop, **how)

    async def _watched(self, coro: Coroutine[Any, Any, Any]) -> Any:
        return await _with_each_wait(coro, lambda: self._on_wait(coro))

    def _on_wait(self, coro: Coroutine[Any, Any, Any]) -> None:
        if not any(each.__qualname__ == HANDLES for each in _awaited(coro)):
            return
        self.waits += 1
        if self.waits == self.at:
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_soon(task.cancel)


def _awaited(coro: Any) -> Iterator[Any]:
    """The coroutines that wait for each other, the outermost first."""
    while isinstance(coro, types.CoroutineType):
        yield coro
        coro = coro.cr_await


@types.coroutine
def _with_each_wait(
    coro: Coroutine[Any, Any, Any], on_wait: Callable[[], None]
) -> Generator[Any, Any, Any]:
    """Run a coroutine, and tell of each of its waits."""
    step: Callable[[], Any] = lambda: coro.send(None)  # noqa: E731
    while True:
        try:
            waited_for = step()
        except StopIteration as end:
            return end.value
        on_wait()
        try:
            yield waited_for
            step = lambda: coro.send(None)  # noqa: E731
        except BaseException as exc:  # noqa: BLE001 - it is the coroutine's
            step = lambda exc=exc: coro.throw(exc)  # type: ignore[misc]  # noqa: E731


@contextmanager
def cancelling() -> Iterator[Cancelling]:
    """Make the tasks of this loop."""
    loop, made = asyncio.get_running_loop(), Cancelling()
    loop.set_task_factory(made.make_task)
    try:
        yield made
    finally:
        loop.set_task_factory(None)


async def heard(line: RawWebSocket, kind: str) -> dict[str, Any] | None:
    """The next event of a kind; ``None`` where the server closes before."""
    while (frame := await line.frame()).opcode == TEXT:
        event: dict[str, Any] = json.loads(frame.payload)
        if event["type"] == kind:
            return event
    return None


@asynccontextmanager
async def dialled(port: int, path: str) -> AsyncIterator[RawWebSocket]:
    """A connection; a gateway may know a moment later than its host that there is a place."""
    while True:
        async with connected(port) as line:
            if (await line.ask(path, UPGRADE)).status != 503:
                yield line
                return
            assert int(line.response.headers["Retry-After"]) > 0


async def hold_a_call(port: int, dialect: str) -> dict[str, Any] | None:
    """Do a bit of everything, as long as the server lets it; returns how the session was opened."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        async with dialled(port, PATHS[dialect]) as line:
            line.send_event({"type": "session.update", "session": MANUAL[dialect]})
            created = await heard(line, "session.created")
            for event in (append(600), COMMIT, CREATE):
                line.send_event(event)
            if created is None or await heard(line, "response.output_audio.delta") is None:
                return created
            line.send_event({"type": "response.cancel"})
            if await heard(line, "response.done") is not None:
                line.send_event(LAST_WORDS[dialect])
                line.close()
            await line.lost()
            return created
    return None


@asynccontextmanager
async def arranged(way: str) -> AsyncIterator[tuple[int, SessionManager, Engine]]:
    """A server of one process, with either reader, or a gateway before a host."""
    gateway = GatewaySettings(private_reader=way != "loop", close_timeout_s=0.2)
    settings = line_settings(gateway, ONE_PLACE)
    if way != "edge":
        async with serving(settings) as server:
            yield server.port, server.app.sessions, server.app.engine
        return
    async with edged_gateway(settings) as server:
        side = server.host.side
        yield int(server.urls[0].rpartition(":")[2]), side.sessions, side.engine


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("way", ["callback", "loop", "edge"])
async def test_c51_cancelled_at_any_wait_a_call_leaves_nothing_behind(
    way: str, dialect: str
) -> None:
    async with arranged(way) as (port, sessions, engine):
        with cancelling() as task:
            for task.at in itertools.count(1):
                task.waits = 0
                created = await hold_a_call(port, dialect)
                await is_over(port, sessions, created)
                await until(lambda: engine.stats().requests == 0)
                stats = engine.stats()
                assert [(each.busy, each.queued, each.restarts) for each in stats.stages] == [
                    (0, 0, 0)
                ] * 3
                assert sessions.kept_places == 0
                if task.waits < task.at:
                    break
            assert task.at > FEWEST_WAITS[way]
            task.at = 0
            async with dialled(port, f"/v1/realtime?model={SHORT}") as line:
                line.send_event(UPDATE)
                await line.until("session.updated")
                await take_turn(line)
        await sessions.wait_empty(PATIENCE_S)


async def is_over(port: int, sessions: SessionManager, created: dict[str, Any] | None) -> None:
    """Wait until the session of a call is gone, or waits for its client; then end it."""
    await until(lambda: len(sessions) == sessions.detached)
    if created is None:  # nobody was told of it, so nobody could come back to it
        for look in sessions.look():
            session = sessions.get(look.id)
            assert session is not None
            session.close("closed")
    elif len(sessions):
        async with connected(port) as back:
            greeting = await resumed(back, created, created["resume_token"], 1, PATHS["duplex"])
            assert greeting["type"] == "session.resumed", greeting
            back.send_event({"type": "session.close"})
            await back.lost()
    await until(lambda: len(sessions) == 0)
