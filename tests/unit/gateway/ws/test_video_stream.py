from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import av
import pytest

from tests.fakes.media_gateway import MediaGateway, media_gateway
from tests.patience import PATIENCE_S


class Watcher:
    """A client; keeps the film."""

    def __init__(self, gateway: MediaGateway, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.gateway = gateway
        self.socket = socket
        self.film = b""
        self.announced: list[dict[str, Any]] = []

    async def say(self, kind: str, **fields: Any) -> None:
        await self.socket.send_json({"type": kind, **fields})

    async def hear(self) -> dict[str, Any]:
        """Return the next message that announces no bytes."""
        while True:
            message = await self.socket.receive(timeout=PATIENCE_S)
            if message.type is aiohttp.WSMsgType.BINARY:
                assert len(message.data) == self.announced[-1]["byte_length"]
                self.film += message.data
                continue
            assert message.type is aiohttp.WSMsgType.TEXT, message
            event: dict[str, Any] = json.loads(message.data)
            if event["type"] != "video.chunk_metadata":
                return event
            self.announced.append(event)


@asynccontextmanager
async def watching() -> AsyncIterator[Watcher]:
    async with media_gateway() as gateway, gateway.http.ws_connect("/v1/realtime/video") as socket:
        yield Watcher(gateway, socket)


async def until_idle(gateway: MediaGateway) -> None:
    import asyncio

    async with asyncio.timeout(PATIENCE_S):
        while gateway.work:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_a_video_comes_as_it_is_made() -> None:
    async with watching() as watcher:
        await watcher.say("session.start", prompt="waves", num_frames=6, size="32x48", seed=1)
        started = await watcher.hear()
        assert started["type"] == "video.start"
        assert started["mime"].startswith('video/mp4; codecs="avc1.')
        assert (started["width"], started["height"], started["fps"]) == (32, 48, 8)
        done = await watcher.hear()
        assert (done["type"], done["stopped"], done["chunks"]) == ("session.done", False, 6)
        assert [each["transport_chunk_index"] for each in watcher.announced] == list(range(6))
        assert {each["kind"] for each in watcher.announced} == {"media"}
    with av.open(io.BytesIO(watcher.film)) as film:
        assert sum(1 for _ in film.decode(video=0)) == 6


async def test_a_client_may_stop_it() -> None:
    async with watching() as watcher:
        await watcher.say("session.start", prompt="never")
        await watcher.say("session.ping")
        assert (await watcher.hear())["type"] == "session.pong"
        await watcher.say("session.stop")
        done = await watcher.hear()
        assert (done["stopped"], done["chunks"]) == (True, 0)
        await until_idle(watcher.gateway)


async def test_the_work_ends_with_its_client() -> None:
    async with watching() as watcher:
        await watcher.say("session.start", prompt="never")
        await watcher.say("session.ping")
        await watcher.hear()
        await watcher.socket.close()
        await until_idle(watcher.gateway)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"type": "session.ping"}, "invalid_request"),
        ({"type": "session.start"}, "missing_required_parameter"),
        ({"type": "session.dance"}, "invalid_value"),
        ({"type": "session.start", "prompt": "x", "format": "webm"}, "invalid_value"),
        ({"type": "session.start", "prompt": "x", "model": "nobody"}, "model_not_found"),
        ({"type": "session.start", "prompt": "fail"}, "stage_failed"),
    ],
)
async def test_what_cannot_be_done_says_why(message: dict[str, Any], code: str) -> None:
    async with watching() as watcher:
        await watcher.socket.send_json(message)
        event = await watcher.hear()
        assert (event["type"], event["error"]["code"]) == ("error", code)


async def test_a_wrong_message_meanwhile_ends_nothing() -> None:
    async with watching() as watcher:
        await watcher.say("session.start", prompt="never")
        await watcher.socket.send_bytes(b"bytes")
        assert (await watcher.hear())["type"] == "error"
        await watcher.say("session.start", prompt="again")
        assert (await watcher.hear())["type"] == "error"
        await watcher.say("session.ping")
        assert (await watcher.hear())["type"] == "session.pong"
