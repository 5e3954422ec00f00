"""Media by address: refused at every door, with a reason, and nobody is asked for anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from duologue.settings import ModelSettings
from tests.conformance.talking_gateway import API_KEY, talking_gateway, talking_settings
from tests.fakes.pictures import picture_url
from tests.unit.gateway.raw_websocket import RawWebSocket, connected

REASONS = ("unsupported", "invalid_base64", "undecodable_audio", "undecodable_image")


@asynccontextmanager
async def a_host_within() -> AsyncIterator[tuple[int, list[str]]]:
    """Somebody in the server's own network, whom a client would like to be fetched for it."""
    asked: list[str] = []

    def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append("connected")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()
        await server.wait_closed()


def addresses(port: int) -> list[str]:
    return [
        f"http://127.0.0.1:{port}/picture.png",
        f"http://localhost:{port}/picture.png",
        f"http://[::ffff:127.0.0.1]:{port}/",
        f"http://2130706433:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "/etc/passwd",
        f"data:text/plain,http://127.0.0.1:{port}/",
        f" data:image/png;base64,AAAA http://127.0.0.1:{port}/",
    ]


async def test_an_address_of_a_picture_or_of_sound_is_refused_at_every_door_and_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    seeing = ModelSettings(name="m", plugin="cascaded", options={"sees": True})
    settings = talking_settings(tmp_path).model_copy(update={"models": (seeing,)})
    async with a_host_within() as (port, asked), talking_gateway(settings) as server:
        headers = {"Authorization": f"Bearer {API_KEY}"}
        async with (
            aiohttp.ClientSession(server.http_url + "/", headers=headers) as client,
            connected(server.port) as line,
        ):
            await line.upgrade("/v1/realtime?model=m", **headers)
            for address in addresses(port):
                picture = {"type": "image_url", "image_url": {"url": address}}
                sound = {"type": "input_audio", "input_audio": {"data": address, "format": "wav"}}
                for part in (picture, sound):
                    assert await by_chat(client, part) == 400, (address, part)
                await by_call(line, {"type": "input_image", "image_url": address})
                await by_call(line, {"type": "input_audio", "audio": address})
            # And the door was open: a picture that comes along is taken.
            here = {"type": "image_url", "image_url": {"url": picture_url(7)}}
            assert await by_chat(client, here) == 200
        assert asked == []


async def by_chat(client: aiohttp.ClientSession, part: dict[str, Any]) -> int:
    """Show something in a chat completion; returns the status."""
    content = [{"type": "text", "text": "hello"}, part]
    body = {"model": "m", "messages": [{"role": "user", "content": content}]}
    async with client.post("chat/completions", json=body) as answer:
        told = await answer.json()
        if answer.status == 400:
            assert told["error"]["code"] in REASONS
        return answer.status


async def by_call(line: RawWebSocket, part: dict[str, Any]) -> None:
    """Show something in a call, which must refuse it and go on."""
    item = {"type": "message", "role": "user", "content": [part]}
    line.send_event({"type": "conversation.item.create", "event_id": "shown", "item": item})
    error = (await line.until("error"))[-1]["error"]
    assert error["event_id"] == "shown"
    assert error["type"] == "invalid_request_error"
