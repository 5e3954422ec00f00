"""C54: a heavy call lets nothing else in the server run for two seconds, under twenty calls."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from pathlib import Path
from typing import Any

import aiohttp

from duologue.engines.pipeline import StageSpec
from tests.faults.faulty_gateway import write_pipeline
from tests.faults.gateway_line import CREATE, UPDATE
from tests.faults.interpreter_holder import HELD_S
from tests.faults.server_process import server_process
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import PING, PONG, TEXT, RawWebSocket, connected

CALLS = 20
LEAD_S = 15.0
"""What is sent ahead: enough for two seconds also on a machine that is busy elsewhere."""

LINE = "and so on " * 60
ANSWER_S = 24.0
"""Longer than what is sent ahead."""


def install_holder(folder: Path) -> None:
    metadata = folder / "holding_model-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: holding-model\nVersion: 1\n")
    entry = "holder = tests.faults.interpreter_holder:HOLDER"
    (metadata / "entry_points.txt").write_text(f"[duologue.runners]\n{entry}\n")


def a_config(folder: Path) -> dict[str, Any]:
    """Twenty calls with one model; and one whose worker is a thread of the server."""
    specs = (
        StageSpec(name="tones", runner="tone", max_jobs=64),
        StageSpec(name="heavy", runner="holder", executor="inline", max_jobs=4),
    )
    steady = {"lines": [LINE], "pipeline": "tones", "credit_ms": int(2 * LEAD_S * 1000)}
    return {
        "models": [
            {"name": "steady", "plugin": "scripted", "options": steady},
            {"name": "heavy", "plugin": "scripted", "options": {"pipeline": "heavy"}},
        ],
        "engine": {
            "pipelines": [],
            "pipeline_files": [str(write_pipeline(folder, spec)) for spec in specs],
        },
        "gateway": {"port": 0, "drain_timeout_s": 0},
        "sessions": {
            "listening": {"vad": None, "end_of_turn": None, "asr": None},
            "send_lead_ms": int(LEAD_S * 1000),
        },
    }


class Ear:
    """Plays what comes as soon as it comes."""

    def __init__(self) -> None:
        self.heard_s = 0.0
        self.starved_s = 0.0
        """How long there was nothing to play, in the midst of an answer."""

        self._plays_until = 0.0

    @property
    def lead_s(self) -> float:
        """How much of what came is yet to be played."""
        return self._plays_until - time.monotonic()

    def hear(self, pcm: bytes) -> None:
        now = time.monotonic()
        if self._plays_until:
            self.starved_s += max(0.0, now - self._plays_until)
        self._plays_until = max(self._plays_until, now) + len(pcm) / 48_000
        self.heard_s += len(pcm) / 48_000


async def listen(line: RawWebSocket, ear: Ear) -> None:
    """Hear an answer to its end; pings are answered."""
    while True:
        frame = await line.frame()
        if frame.opcode == PING:
            line.send(PONG, frame.payload)
            continue
        assert frame.opcode == TEXT, (frame.opcode, frame.payload)
        event = json.loads(frame.payload)
        if event["type"] == "response.output_audio.delta":
            ear.hear(base64.b64decode(event["delta"]))
        if event["type"] == "response.done":
            assert event["response"]["status"] == "completed", event
            return


async def lag_s(url: str) -> float:
    """How late the loop of the server was, summed up."""
    async with aiohttp.ClientSession() as http, http.get(f"{url}/metrics") as answer:
        found = re.search(r"^duologue_loop_lag_seconds_sum (\S+)", await answer.text(), re.M)
    assert found is not None
    return float(found[1])


async def test_c54_who_holds_the_interpreter_ends_no_call_and_nobody_hears_a_gap(
    tmp_path: Path,
) -> None:
    install_holder(tmp_path)
    async with server_process(tmp_path, a_config(tmp_path)) as server:
        ears = [Ear() for _ in range(CALLS)]
        ready = asyncio.Barrier(CALLS + 1)

        async def hold_a_call(ear: Ear) -> None:
            async with connected(server.port) as line:
                line.patience_s = PATIENCE_S
                await line.upgrade("/v1/realtime?model=steady")
                line.send_event(UPDATE)
                await line.until("session.updated")
                await ready.wait()
                line.send_event(CREATE)
                await listen(line, ear)

        async with asyncio.TaskGroup() as group:
            for ear in ears:
                group.create_task(hold_a_call(ear))
            await ready.wait()
            async with connected(server.port) as line:
                line.patience_s = PATIENCE_S
                await line.upgrade("/v1/realtime?model=heavy")
                line.send_event(UPDATE)
                await line.until("session.updated")
                async with asyncio.timeout(PATIENCE_S):
                    while min(ear.lead_s for ear in ears) < 2 * HELD_S:  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                before_s = await lag_s(server.url)
                for ear in ears:
                    ear.starved_s = 0.0
                line.send_event(CREATE)
                await listen(line, Ear())
                assert max(ear.starved_s for ear in ears) == 0.0
            assert await lag_s(server.url) - before_s > HELD_S / 2, "it shows in the figures"
        assert min(ear.heard_s for ear in ears) > ANSWER_S
