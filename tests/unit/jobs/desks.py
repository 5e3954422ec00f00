"""A desk over a folder, with work that a test lets go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from duologue.core.clock import SystemClock
from duologue.core.errors import EngineError
from duologue.jobs.desk import JobDesk
from duologue.jobs.files import JobFiles
from duologue.jobs.records import JobRecord
from duologue.jobs.settings import JobSettings
from duologue.jobs.store import JobStore
from tests.patience import PATIENCE_S


def record(number: int = 1, **changes: Any) -> JobRecord:
    values: dict[str, Any] = {
        "id": f"job_{number}",
        "kind": "echo",
        "caller": "me",
        "about": b"hello?",
        "created_at": 1000.0 + number,
    }
    return JobRecord(**values | changes)


class Echo:
    """Gives the request back, once a test lets it; some fail, one crashes."""

    def __init__(self) -> None:
        self.begun: list[bytes] = []
        self.cancelled: list[bytes] = []
        self.go = asyncio.Event()

    async def work(
        self, request: bytes, tell: Callable[[int], None]
    ) -> AsyncIterator[tuple[str, bytes]]:
        self.begun.append(request)
        tell(40)
        yield "text/plain", request[:2]
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(request)
            raise
        if request == b"fail":
            raise EngineError("it was to fail", code="out_of_memory")
        if request == b"crash":
            raise LookupError("nobody expected this")
        yield "text/plain", request[2:]


class Clock(SystemClock):
    """Wall time that a test moves."""

    ahead_s = 0.0

    def wall_time(self) -> float:
        return super().wall_time() + self.ahead_s


@asynccontextmanager
async def desk(
    folder: Path,
    echo: Echo,
    clock: Clock | None = None,
    *,
    turn: Callable[[str], AbstractAsyncContextManager[None]] = lambda _caller: nullcontext(),
    quotas: Mapping[str, int] | None = None,
    **settings: Any,
) -> AsyncIterator[JobDesk]:
    made = JobDesk(
        JobStore(folder / "jobs.sqlite"),
        JobFiles(folder),
        {"echo": echo.work},
        JobSettings(**settings),
        clock or Clock(),
        turn=turn,
        quotas=quotas or {},
    )
    async with made.open():
        yield made


async def until_ended(desk: JobDesk, job_id: str) -> JobRecord:
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await desk.get("me", job_id)).has_ended:  # noqa: ASYNC110
            await asyncio.sleep(0)
    return found


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not done():  # noqa: ASYNC110
            await asyncio.sleep(0)
