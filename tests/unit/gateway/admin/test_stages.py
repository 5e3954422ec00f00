"""Orders for stages over HTTP, at a real engine: alone, and behind gateways of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from duologue.app import running_app
from duologue.settings import Settings
from tests.fakes.edged_gateway import edged_gateway
from tests.fakes.small_gateway import API_KEY, small_settings

ADMIN_KEY = "key-of-who-runs-it"
BEARER = {"Authorization": f"Bearer {ADMIN_KEY}"}
PIPELINE = """
name: nap
speech: {voices: [tone]}
outputs: audio
stages:
  - {name: nap, runner: tone, executor: inline, max_jobs: 4%s}
"""
AWAKE = """
name: awake
stages:
  - name: awake
    runner: openai_chat
    executor: inline
    settings: {base_url: "http://localhost:9", model: m}
"""


def settings_with(folder: Path, more: str = "") -> Settings:
    """Besides the usual stages one that speaks, and one that cannot sleep."""
    (folder / "nap.yaml").write_text(PIPELINE % more)
    (folder / "awake.yaml").write_text(AWAKE)
    settings = small_settings(api_keys=(API_KEY,))
    gateway = settings.gateway.model_copy(update={"admin_key": SecretStr(ADMIN_KEY)})
    files = (folder / "nap.yaml", folder / "awake.yaml")
    engine = settings.engine.model_copy(update={"pipeline_files": files})
    return settings.model_copy(update={"gateway": gateway, "engine": engine})


class Client:
    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url, self.http = url, http

    async def order(self, name: str, body: object = None) -> tuple[int, Any]:
        url = f"{self.url}/v1/omni/{name}"
        async with self.http.post(url, json=body, headers=BEARER) as answer:
            return answer.status, await answer.json()

    async def stages(self) -> dict[str, Any]:
        async with self.http.get(f"{self.url}/v1/omni/stages", headers=BEARER) as answer:
            assert answer.headers["Cache-Control"] == "no-store"
            (engine,) = (await answer.json())["engines"]
            return {each["stage_id"]: each for each in engine["stages"]} | {"": engine}

    async def ready(self) -> Any:
        async with self.http.get(f"{self.url}/ready") as answer:
            return await answer.json()

    async def speak(self) -> tuple[int, str | None, Any]:
        body = {"model": "nap", "input": "Good night.", "voice": "tone", "response_format": "wav"}
        headers = {"Authorization": f"Bearer {API_KEY}"}
        url = f"{self.url}/v1/audio/speech"
        async with self.http.post(url, json=body, headers=headers) as answer:
            retry = answer.headers.get("Retry-After")
            if answer.status == 200:
                return 200, retry, len(await answer.read())
            return answer.status, retry, (await answer.json())["error"]["code"]


@asynccontextmanager
async def alone(settings: Settings) -> AsyncIterator[Client]:
    async with running_app(settings) as app, aiohttp.ClientSession() as http:
        yield Client(app.url, http)


@asynccontextmanager
async def behind_gateways(settings: Settings) -> AsyncIterator[Client]:
    async with edged_gateway(settings) as gateway, aiohttp.ClientSession() as http:
        yield Client(gateway.urls[0], http)


@pytest.mark.parametrize("server", [alone, behind_gateways])
async def test_a_stage_sleeps_refuses_and_wakes(server: Any, tmp_path: Path) -> None:
    async with server(settings_with(tmp_path)) as client:
        status, spoken = (await client.speak())[::2]
        assert status == 200
        status, answer = await client.order("sleep", {"stage_ids": ["nap"], "level": 1})
        assert (status, answer["status"]) == (200, "SUCCESS")
        (ack,) = answer["acks"]
        assert (ack["stage_id"], ack["rank"], ack["status"], ack["level"]) == (
            *("nap", 0, "SUCCESS"),
            2,
        )
        assert isinstance(ack["freed_bytes"], int)
        assert (await client.speak())[0] == 503
        stages = await client.stages()
        assert (stages["nap"]["state"], stages["scripted.words"]["state"]) == ("asleep", "awake")
        status, answer = await client.order("sleep", {"stage_ids": ["nap"]})
        assert (status, answer["status"]) == (200, "SKIPPED")
        status, answer = await client.order("wakeup", {"stage_ids": [stages["nap"]["number"]]})
        assert (status, answer["acks"][0]["level"]) == (200, 0)
        assert (await client.speak())[::2] == (200, spoken)


async def test_a_request_to_a_stage_that_sleeps_is_told_why_and_when_to_come_back(
    tmp_path: Path,
) -> None:
    async with alone(settings_with(tmp_path)) as client:
        await client.order("sleep", {"stage_ids": ["nap"]})
        assert await client.speak() == (503, "30", "stage_asleep")
        assert (await client.ready())["asleep"] == ["nap"]
        await client.order("wakeup")
        await client.order("pause", {"stage_ids": ["nap"], "queue": "refuse"})
        assert await client.speak() == (503, "30", "stage_paused")
        ready = await client.ready()
        assert ("asleep" in ready, ready["paused"]) == (False, ["nap"])
        status, answer = await client.order("resume", {"stage_ids": ["nap"]})
        assert (status, answer["status"]) == (200, "SUCCESS")
        assert (await client.speak())[0] == 200


async def test_a_request_wakes_a_stage_that_says_so(tmp_path: Path) -> None:
    async with alone(settings_with(tmp_path, ", wake_on_request: true")) as client:
        await client.order("sleep", {"stage_ids": ["nap"]})
        assert (await client.speak())[0] == 200
        assert (await client.stages())["nap"]["state"] == "awake"


async def test_behind_gateways_readiness_says_what_rests_and_how_workers_started(
    tmp_path: Path,
) -> None:
    settings = settings_with(tmp_path)
    async with edged_gateway(settings) as gateway, aiohttp.ClientSession() as http:
        client = Client(gateway.urls[0], http)
        await client.order("sleep", {"stage_ids": ["nap"]})
        await gateway.edges[0].host.wait_status(lambda status: bool(status.asleep))
        ready = await client.ready()
    assert ready["asleep"] == ["nap"]
    assert {each["worker"] for each in ready["start"]["workers"]} >= {"nap/0", "scripted.words/0"}


async def test_all_sleep_but_who_cannot_and_one_by_name_is_refused(tmp_path: Path) -> None:
    async with alone(settings_with(tmp_path)) as client:
        status, answer = await client.order("sleep")
        assert (status, answer["status"]) == (200, "SUCCESS")
        statuses = {ack["stage_id"]: ack["status"] for ack in answer["acks"]}
        assert (statuses["nap"], statuses["awake"]) == ("SUCCESS", "SKIPPED")
        status, answer = await client.order("sleep", {"stage_ids": ["awake"]})
        assert (status, answer["status"]) == (501, "ERROR")
        assert answer["error"]["code"] == "sleep_unsupported"
        assert answer["error"]["message"].startswith("stage awake: ")
        assert (await client.stages())["awake"]["state"] == "awake"


async def test_the_start_is_told_phase_by_phase(tmp_path: Path) -> None:
    async with alone(settings_with(tmp_path)) as client:
        engine = (await client.stages())[""]
        ready = await client.ready()
    assert engine["start"] == ready["start"]
    phases = {each["worker"]: list(each["phases"]) for each in engine["start"]["workers"]}
    assert phases["nap/0"] == ["wait", "spawn", "import", "load", "warm_up"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"stage_ids": ["nobody"]}, 404, "stage_not_found"),
        ({"stage_ids": []}, 400, "invalid_value"),
        ({"level": 3}, 400, "invalid_value"),
        ({"mode": "hope"}, 400, "invalid_value"),
        ({"stage": "nap"}, 400, "unknown_parameter"),
    ],
)
async def test_orders_that_make_no_sense_are_refused(
    body: object, status: int, code: str, tmp_path: Path
) -> None:
    async with alone(settings_with(tmp_path)) as client:
        found, answer = await client.order("sleep", body)
        assert (found, answer["error"]["code"]) == (status, code)


async def test_nobody_else_may_order_anything(tmp_path: Path) -> None:
    async with alone(settings_with(tmp_path)) as client:
        for headers in ({}, {"Authorization": f"Bearer {API_KEY}"}):
            url = f"{client.url}/v1/omni/sleep"
            async with client.http.post(url, headers=headers) as answer:
                assert answer.status == 401
            async with client.http.get(f"{client.url}/v1/omni/stages", headers=headers) as answer:
                assert answer.status == 401
        assert (await client.stages())["nap"]["state"] == "awake"


async def test_without_an_admin_key_there_are_no_such_routes(tmp_path: Path) -> None:
    settings = settings_with(tmp_path)
    gateway = settings.gateway.model_copy(update={"admin_key": None})
    async with alone(settings.model_copy(update={"gateway": gateway})) as client:
        status, _ = await client.order("sleep")
    assert status == 404
