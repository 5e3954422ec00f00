"""Who is let in, over real HTTP: classes of work, keys and jobs, with gateways and without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from pydantic import SecretStr

from duologue.app import running_app
from duologue.engines.orchestrator.engine import Engine
from duologue.gateway.http.settings import ClassWeights, HttpSettings
from duologue.gateway.settings import ApiKeySettings, GatewaySettings
from duologue.jobs.settings import JobSettings
from duologue.settings import Settings
from tests.fakes.edged_gateway import edged_gateway
from tests.fakes.media_gateway import media_settings

EVERYBODY, KITCHEN = "key-of-everybody", "key-of-the-kitchen"
NEVER = {"prompt": "never", "size": "64x64"}
UPGRADE = {
    "Connection": "upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
SERVERS = ("one process", "two gateways")


def settings(folder: Path, **http: object) -> Settings:
    weights = ClassWeights(interactive=1, batch=1)
    kitchen = ApiKeySettings(name="kitchen", key=SecretStr(KITCHEN), max_requests=1, max_jobs=1)
    gateway = GatewaySettings(
        port=0,
        drain_timeout_s=0,
        api_keys=(SecretStr(EVERYBODY),),
        named_keys=(kitchen,),
        http=HttpSettings(max_requests=4, class_weights=weights, **http),  # type: ignore[arg-type]
    )
    return media_settings(gateway=gateway, jobs=JobSettings(folder=folder))


class Served:
    """Clients of all gateways of a server, in turn."""

    def __init__(self, engine: Engine, clients: list[aiohttp.ClientSession]) -> None:
        self.engine = engine
        self._clients = clients
        self._asked = 0

    def ask(
        self, method: str, path: str, key: str, json: object = None, **headers: str
    ) -> asyncio.Task[tuple[int, str, str | None]]:
        """Ask for something; gives the status, the code of an error, and when to come again."""
        client = self._clients[self._asked % len(self._clients)]
        self._asked += 1

        async def asked() -> tuple[int, str, str | None]:
            given = {"Authorization": f"Bearer {key}", **headers}
            async with client.request(method, path, json=json, headers=given) as answer:
                error = (await answer.json()).get("error") or {}
                return answer.status, error.get("code", ""), answer.headers.get("Retry-After")

        return asyncio.create_task(asked())

    async def open(self, path: str, key: str) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket, at the next gateway."""
        client = self._clients[self._asked % len(self._clients)]
        self._asked += 1
        return await client.ws_connect(path, headers={"Authorization": f"Bearer {key}"})

    async def until_working(self, count: int) -> None:
        await until(lambda: self.engine.stats().requests == count)


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not done():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@asynccontextmanager
async def served(kind: str, wanted: Settings) -> AsyncIterator[Served]:
    if kind == "one process":
        async with running_app(wanted) as app, clients_of([app.url]) as clients:
            yield Served(app.engine, clients)
    else:
        async with edged_gateway(wanted, 2) as gateway, clients_of(gateway.urls) as clients:
            yield Served(gateway.host.side.engine, clients)


@asynccontextmanager
async def clients_of(urls: list[str]) -> AsyncIterator[list[aiohttp.ClientSession]]:
    ports = [url.rpartition(":")[2] for url in urls]
    clients = [aiohttp.ClientSession(f"http://127.0.0.1:{port}") for port in ports]
    try:
        yield clients
    finally:
        for client in clients:
            await client.close()


async def gone(*tasks: asyncio.Task[tuple[int, str, str | None]]) -> None:
    """The clients hang up."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@pytest.mark.parametrize("kind", SERVERS)
async def test_pictures_leave_room_for_others_and_come_back_to_it(
    kind: str, tmp_path: Path
) -> None:
    async with served(kind, settings(tmp_path)) as server:
        pictures = [
            server.ask("POST", "/v1/images/generations", EVERYBODY, NEVER) for _ in range(3)
        ]
        await server.until_working(3)
        status, code, retry_after = await server.ask(
            "POST", "/v1/images/generations", EVERYBODY, NEVER
        )
        assert (status, code) == (503, "server_full")
        assert retry_after is not None
        assert 1 <= int(retry_after) <= 60
        assert (await server.ask("GET", "/v1/videos", EVERYBODY))[0] == 200
        await gone(*pictures)
        await server.until_working(0)
        answer = server.ask(
            "POST", "/v1/images/generations", EVERYBODY, {"prompt": "a cat", "size": "64x64"}
        )
        assert (await answer)[0] == 200


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_key_has_so_many_requests_at_a_time(kind: str, tmp_path: Path) -> None:
    async with served(kind, settings(tmp_path)) as server:
        first = server.ask("POST", "/v1/images/generations", KITCHEN, NEVER)
        await server.until_working(1)
        status, code, retry_after = await server.ask("GET", "/v1/videos", KITCHEN)
        assert (status, code) == (429, "rate_limited")
        assert retry_after is not None
        assert (await server.ask("GET", "/v1/videos", EVERYBODY))[0] == 200
        await gone(first)


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_key_has_so_many_jobs_at_a_time(kind: str, tmp_path: Path) -> None:
    film = {"prompt": "never", "size": "64x64", "seconds": "1"}
    async with served(kind, settings(tmp_path)) as server:
        assert (await server.ask("POST", "/v1/videos", KITCHEN, film))[0] == 200
        status, code, _ = await server.ask("POST", "/v1/videos", KITCHEN, film)
        assert (status, code) == (429, "rate_limited")
        assert (await server.ask("POST", "/v1/videos", EVERYBODY, film))[0] == 200


async def test_who_would_rather_wait_is_next_when_there_is_room(tmp_path: Path) -> None:
    async with served("one process", settings(tmp_path, queued_requests=1)) as server:
        pictures = [
            server.ask("POST", "/v1/images/generations", EVERYBODY, NEVER) for _ in range(3)
        ]
        await server.until_working(3)
        cat = {"prompt": "a cat", "size": "64x64"}
        patient = server.ask("POST", "/v1/images/generations", EVERYBODY, cat, Prefer="wait=20")
        await gone(pictures[0])
        assert (await patient)[0] == 200
        await gone(*pictures[1:])


VIDEO = "/v1/realtime/video"
SPEECH = "/v1/audio/speech/stream"


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_socket_has_a_slot_of_its_class_until_it_is_closed(
    kind: str, tmp_path: Path
) -> None:
    async with served(kind, settings(tmp_path)) as server:
        watching = [await server.open(VIDEO, EVERYBODY) for _ in range(3)]
        status, code, retry_after = await server.ask("GET", VIDEO, EVERYBODY, **UPGRADE)
        assert (status, code) == (503, "server_full")
        assert retry_after is not None
        # What is left of the four slots is kept for the other class.
        assert (await server.ask("GET", SPEECH, EVERYBODY, **UPGRADE))[:2] == (400, "unsupported")
        await watching[0].close()
        again = await server.open(f"{VIDEO}?wait=20", EVERYBODY)
        for socket in (again, *watching[1:]):
            await socket.close()


async def test_a_socket_counts_among_the_requests_of_its_key(tmp_path: Path) -> None:
    async with served("one process", settings(tmp_path)) as server:
        watching = await server.open(VIDEO, KITCHEN)
        status, code, retry_after = await server.ask("GET", VIDEO, KITCHEN, **UPGRADE)
        assert (status, code) == (429, "rate_limited")
        assert retry_after is not None
        await watching.close()
