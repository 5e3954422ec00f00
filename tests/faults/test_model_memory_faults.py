"""Models that run out of memory, and workers killed under many calls at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duologue.engines.settings import EngineSettings
from duologue.sessions.settings import ListeningSettings, SessionSettings
from tests.faults.caller import Caller, caller_of, check_words
from tests.faults.faulty_gateway import FaultyGateway, faulty_gateway, install_models
from tests.patience import PATIENCE_S

CALLS = 20


@pytest.fixture
async def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FaultyGateway]:
    install_models(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    sessions = SessionSettings(listening=ListeningSettings(end_of_turn=None), send_lead_ms=1000)
    engine = EngineSettings(restart_backoff_s=0.01)
    async with faulty_gateway(tmp_path, engine, sessions, max_jobs=2 * CALLS) as gateway:
        yield gateway


async def test_a_model_without_memory_fails_what_asked_for_it_alone_and_its_worker_is_kept(
    gateway: FaultyGateway,
) -> None:
    async with caller_of(gateway.url) as neighbour, caller_of(gateway.url) as caller:
        for stage in ("asr", "llm", "tts"):
            pid = gateway.pid(stage)
            await neighbour.say("long hello")
            await neighbour.response_sounds()
            await caller.say(f"{stage} starve")
            response = await caller.check_failure("out_of_memory")
            assert response.status_details is not None
            assert response.status_details.error is not None
            assert response.status_details.error.type == "server_error"
            await caller.is_answered("hello again")
            assert await _is_told(neighbour) == "completed"
            await neighbour.is_answered("again hello")
            assert gateway.pid(stage) == pid
            assert gateway.stats(stage).restarts == 0


@pytest.mark.parametrize("stage", ["asr", "llm", "tts"])
async def test_a_worker_killed_at_a_random_moment_under_twenty_calls_costs_each_one_answer_at_most(
    gateway: FaultyGateway, stage: str
) -> None:
    """Each gets its answer, or a failed response with a reason, and its next turn works."""
    chance = random.Random(f"{stage} 11")
    begun: asyncio.Queue[None] = asyncio.Queue(CALLS)
    killed = asyncio.Event()
    outcomes: list[str] = []

    async def hold_a_call() -> None:
        async with caller_of(gateway.url, patience_s=PATIENCE_S) as caller:
            await caller.say("long hello")
            if chance.random() < 0.5:
                await caller.response_begins()
            begun.put_nowait(None)
            outcomes.append(await _is_told(caller))
            await killed.wait()
            await caller.is_answered("hello again")

    async with asyncio.TaskGroup() as group:
        for _ in range(CALLS):
            group.create_task(hold_a_call())
        # Some have not been understood by now, some are being answered.
        for _ in range(chance.randrange(CALLS // 2, CALLS)):
            await begun.get()
        gateway.kill(stage)
        await gateway.works(stage)
        killed.set()
    assert len(outcomes) == CALLS
    assert set(outcomes) <= {"completed", "replica_lost"}
    assert gateway.stats(stage).restarts == 1


async def _is_told(caller: Caller) -> str:
    """Check that a response ends well, or fails with a reason that a client can read."""
    response = await caller.response()
    if response.status == "completed":
        check_words(response, "long hello")
        return "completed"
    details = response.status_details
    assert response.status == "failed", response
    assert details is not None
    assert details.error is not None
    assert details.error.code == details.reason
    return str(details.reason)
