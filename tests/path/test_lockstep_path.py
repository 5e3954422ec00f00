"""A model that hears while it speaks, from a socket to its frames and back, on the processor.

It is small and random, so it makes noise; everything around it is what serves the true one.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch

from duologue.app import App, running_app
from duologue.commands.demo.lockstep import MODEL
from tests.fakes.lockstep_gateway import lockstep_settings
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import RawWebSocket, connected

pytestmark = pytest.mark.torch  # it is warmed up, and talks

torch.set_num_threads(1)

FRAME = base64.b64encode(b"\x10\x00\xf0\xff" * 960).decode()
"""80 ms of a high tone, hardly audible."""


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[App]:
    async with running_app(await asyncio.to_thread(lockstep_settings, tmp_path)) as app:
        yield app
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


class Caller:
    """One socket, and all that came on it."""

    def __init__(self, raw: RawWebSocket, *, numbered: bool = False) -> None:
        self.raw = raw
        self.numbered = numbered
        self.events: list[dict[str, Any]] = []
        self.sent = 0

    def say(self, **event: Any) -> None:
        self.raw.send_event(event)

    def speak(self) -> None:
        self.say(type="input_audio_buffer.append", audio=FRAME)
        self.sent += 1

    async def next(self) -> dict[str, Any]:
        event = await self.raw.event()
        self.events.append(event)
        if self.numbered and event.get("server_event_seq"):
            seq = event["server_event_seq"]
            self.say(type="session.event_ack", server_event_seq=seq)
        assert event["type"] != "error", event
        return event

    async def until(self, kind: str) -> dict[str, Any]:
        while (event := await self.next())["type"] != kind:
            pass
        return event

    async def hear(self, deltas: int) -> list[dict[str, Any]]:
        """Speak, and go on until so many more pieces of sound have come."""
        heard = []
        while len(heard) < deltas:
            event = await self.next()
            if event["type"].endswith("audio.delta"):
                heard.append(event)
                self.speak()
        return heard

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]


@asynccontextmanager
async def calling(gateway: App, path: str, **session: Any) -> AsyncIterator[Caller]:
    async with connected(int(gateway.url.rpartition(":")[2])) as raw:
        await raw.upgrade(path)
        caller = Caller(raw, numbered="duplex" in path)
        caller.say(type="session.update", **session)
        await caller.until("session.updated")
        caller.speak()
        yield caller


@asynccontextmanager
async def talking(gateway: App, model: str = MODEL, **session: Any) -> AsyncIterator[Caller]:
    given = {"type": "realtime", **session}
    async with calling(gateway, f"/v1/realtime?model={model}", session=given) as caller:
        yield caller


def item_of(event: dict[str, Any]) -> str:
    return str(event["item_id"])


async def test_two_calls_at_once_one_interrupted_and_truncated(gateway: App) -> None:
    voice = {"audio": {"output": {"voice": "hiss"}}}
    async with (
        talking(gateway, instructions="You are kind.") as first,
        talking(gateway, instructions="You are stern.", **voice) as second,
    ):
        heard, others = await asyncio.gather(first.hear(6), second.hear(6))
        # Sound has come while audio went in, in one answer that is not over.
        assert first.sent > 6
        assert {event["response_id"] for event in heard} == {heard[0]["response_id"]}
        assert first.of("response.output_audio_transcript.delta")
        assert base64.b64decode(heard[0]["delta"])
        assert [e["delta"] for e in heard] != [e["delta"] for e in others]

        interrupted = heard[0]["response_id"]
        first.say(type="response.cancel")
        done = await first.until("response.done")
        assert (done["response"]["id"], done["response"]["status"]) == (interrupted, "cancelled")
        first.say(
            type="conversation.item.truncate",
            item_id=item_of(heard[0]),
            content_index=0,
            audio_end_ms=100,
        )
        await first.until("conversation.item.truncated")
        again, _ = await asyncio.gather(first.hear(4), second.hear(4))
        assert interrupted not in {event["response_id"] for event in again}
        assert second.of("response.done") == [], "the other call was not interrupted"


async def test_a_call_goes_on_over_another_connection(gateway: App) -> None:
    port = int(gateway.url.rpartition(":")[2])
    path = "/v1/duplex?autostart=0"
    async with calling(gateway, path, model=MODEL, instructions="You are kind.") as caller:
        greeting = caller.events[0]
        heard = await caller.hear(4)
        received = caller.events[-1]["server_event_seq"]
        caller.raw.reset()
    async with connected(port) as raw:
        await raw.upgrade(path)
        back = Caller(raw, numbered=True)
        back.say(
            type="session.resume",
            session_id=greeting["session"]["id"],
            resume_token=greeting["resume_token"],
            last_received_server_event_seq=received,
        )
        resumed = await back.until("session.resumed")
        assert resumed["session"]["id"] == greeting["session"]["id"]
        back.speak()
        again = await back.hear(4)
        assert again[0]["response_id"] == heard[0]["response_id"], "the answer goes on"
        numbers = [e["server_event_seq"] for e in back.events if e.get("server_event_seq")]
        assert numbers == list(range(received + 1, received + 1 + len(numbers)))
        back.say(type="session.close")
        await back.until("session.closed")


async def test_a_call_goes_on_when_its_worker_is_killed(tmp_path: Path) -> None:
    settings = await asyncio.to_thread(lockstep_settings, tmp_path, "process")
    async with running_app(settings) as app:
        async with talking(app, instructions="You are kind.") as caller:
            heard = await caller.hear(4)
            (worker,) = children()
            os.kill(worker, signal.SIGKILL)
            done = await caller.until("response.done")
            assert done["response"]["id"] == heard[0]["response_id"]
            assert done["response"]["status_details"]["error"]["code"] == "replica_lost"
            caller.raw.patience_s = PATIENCE_S
            again = await caller.hear(4)
            assert again[0]["response_id"] != heard[0]["response_id"]
        await app.sessions.wait_empty(PATIENCE_S)


def children() -> list[int]:
    """The processes that this one has started for models."""
    mine = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in mine}
    return [int(pid) for pid, command in commands.items() if b"duologue.engines.worker" in command]


async def test_moshi_speaks_as_itself(gateway: App) -> None:
    async with talking(gateway, "moshi") as caller:
        assert len(await caller.hear(3)) == 3
