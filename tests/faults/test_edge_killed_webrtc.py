"""A gateway that is killed takes its WebRTC connections with it; their callers offer anew."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duologue.clients.transports.webrtc  # noqa: F401  (it reads files: not while the loop is watched)
from duologue.clients import DuplexClient, Reconnected
from duologue.protocol.commands import CreateItem
from duologue.protocol.items import InputText, MessageItem
from tests.faults.edge_killed import CONFIG, QUICK, STARTS_S, children, sockets
from tests.faults.server_process import server_process


def config() -> dict[str, Any]:
    gateway = {**CONFIG["gateway"], "webrtc": {"bind_address": "127.0.0.1"}}
    model = {"name": "m", "plugin": "scripted", "options": {"lines": ["A scripted answer."]}}
    return {**CONFIG, "gateway": gateway, "models": [model]}


def sockets_of(edges: Sequence[int]) -> dict[int, int]:
    return {edge: sockets(edge) for edge in edges}


async def test_a_webrtc_caller_of_a_killed_gateway_goes_on_with_its_session_at_another(
    tmp_path: Path,
) -> None:
    async with server_process(tmp_path, config()) as server:
        _, *edges = await asyncio.to_thread(children, server.pid)
        before = await asyncio.to_thread(sockets_of, edges)
        async with DuplexClient.connect(server.url, transport="webrtc", reconnect=QUICK) as call:
            session_id = call.session.id
            said = (InputText(text="Remember the number seven."),)
            item = MessageItem(id="item_1", role="user", content=said)
            call.send(CreateItem(item=item))
            assert await call.retrieve("item_1") == item
            events = call.events()
            now = await asyncio.to_thread(sockets_of, edges)
            holder = max(edges, key=lambda edge: now[edge] - before[edge])
            os.kill(holder, signal.SIGKILL)
            async with asyncio.timeout(STARTS_S):
                while not isinstance(event := await anext(events), Reconnected):
                    pass
            assert event.rolled_over_from is None
            assert call.session.id == session_id
            assert await call.retrieve("item_1") == item
            answer = await call.ask("And now?")
            assert answer.status == "completed"
            assert answer.audio_bytes > 0
