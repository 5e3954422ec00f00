"""A real gateway with a tiny policy, and a robot that is connected to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from duologue.app import App, running_app
from duologue.engines.settings import EngineSettings
from duologue.gateway.robot.settings import RobotSettings
from duologue.gateway.settings import GatewaySettings
from duologue.protocol.openpi import Values, read_values, write_values
from duologue.settings import ModelSettings, Settings
from tests.fakes.tiny_policy import write_pipeline
from tests.patience import PATIENCE_S

API_KEY = "sesame"
"""As the clients have it that stand in environments of their own."""
ROUTE = "/v1/realtime/robot/openpi"


class Robot:
    """A client that reads and writes one message after another."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def say(self, values: dict[str, object]) -> None:
        await self.socket.send_bytes(write_values(values))

    async def hear(self) -> Values:
        """Return the next message, which is no error."""
        message = await self.socket.receive(timeout=PATIENCE_S)
        assert message.type is aiohttp.WSMsgType.BINARY, message
        return read_values(message.data)

    async def fault(self) -> dict[str, Any]:
        """Return the next message, which is one."""
        message = await self.socket.receive(timeout=PATIENCE_S)
        assert message.type is aiohttp.WSMsgType.TEXT, message
        event = json.loads(message.data)
        assert event["type"] == "error"
        error: dict[str, Any] = event["error"]
        return error


def robot_settings(folder: Path, executor: str = "inline", **robot: Any) -> Settings:
    path = write_pipeline(folder, executor=executor)
    return Settings(
        models=(ModelSettings(name="echo", plugin="echo"),),
        engine=EngineSettings(pipelines=(), pipeline_files=(path,)),
        gateway=GatewaySettings(
            port=0, drain_timeout_s=0, api_keys=(API_KEY,), robot=RobotSettings(**robot)
        ),
    )


@asynccontextmanager
async def robot_gateway(**robot: Any) -> AsyncIterator[tuple[App, aiohttp.ClientSession]]:
    """Run the server; the client has a key, as openpi's client presents it."""
    with TemporaryDirectory() as folder:
        async with running_app(robot_settings(Path(folder), **robot)) as app:
            url = f"http://127.0.0.1:{app.url.rpartition(':')[2]}"
            headers = {"Authorization": f"Api-Key {API_KEY}"}
            async with aiohttp.ClientSession(url, headers=headers) as client:
                yield app, client


@asynccontextmanager
async def connected(client: aiohttp.ClientSession) -> AsyncIterator[Robot]:
    async with client.ws_connect(ROUTE, max_msg_size=0) as socket:
        robot = Robot(socket)
        assert (await robot.hear())["type"] == "policy_server_config"
        yield robot
