from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import aiohttp
import numpy as np
import pytest
from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.test_utils import TestClient, TestServer

from duologue.core.clock import SystemClock
from duologue.core.ids import id_maker
from duologue.engines.policy_offer import PolicyOffer
from duologue.engines.policy_payloads import ActionChunk, DecideActions
from duologue.gateway.errors import errors_in_json
from duologue.gateway.robot.settings import RobotSettings
from duologue.gateway.route_requests import RouteRequests
from duologue.gateway.ws.robot_stream import RobotStreamEndpoint
from duologue.telemetry import LabelSets, Metrics
from tests.fakes.engine import FakeEngine
from tests.fakes.robot_gateway import ROUTE, Robot, connected, robot_gateway
from tests.fakes.tiny_policy import CONFIG, OFFER, observation
from tests.patience import PATIENCE_S

CHUNK = ActionChunk(np.arange(35, dtype="<f4").tobytes(), 5, 7)


async def until(happened: Callable[[], bool]) -> None:
    while not happened():  # noqa: ASYNC110
        await asyncio.sleep(0)


@dataclass
class Stand:
    """The route on an engine that answers when a test says so."""

    engine: FakeEngine
    metrics: Metrics
    robot: Robot

    async def asked(self, seed: int) -> str:
        """Wait until the policy has the observation with this seed; the request's id."""
        while True:
            for request_id, fake in self.engine.running.items():
                ask = fake.request.first
                if isinstance(ask, DecideActions) and ask.seed == seed and not fake.cancelled:
                    return request_id
            await asyncio.sleep(0)

    async def answer(self, seed: int) -> None:
        request_id = await self.asked(seed)
        self.engine.output(request_id, CHUNK)
        self.engine.complete(request_id)

    def counted(self, outcome: str) -> float:
        return self.metrics.robot_observations[outcome].value


@asynccontextmanager
async def serving(
    offers: dict[str, PolicyOffer] | None = None, **settings: Any
) -> AsyncIterator[tuple[FakeEngine, Metrics, TestClient[web.Request, web.Application]]]:
    engine, metrics, clock = FakeEngine(pipelines=("tiny",)), Metrics(LabelSets()), SystemClock()
    endpoint = RobotStreamEndpoint(
        RouteRequests(engine, clock, id_maker(), 60),
        {"tiny": OFFER} if offers is None else offers,
        RobotSettings(**settings),
        clock,
        metrics,
    )
    app = web.Application(middlewares=[errors_in_json])
    for route in endpoint.routes():
        app.router.add_get(route.path, route.handle)
    async with TestClient(TestServer(app)) as client:
        yield engine, metrics, client
        await endpoint.close_all(PATIENCE_S)


@asynccontextmanager
async def standing(**settings: Any) -> AsyncIterator[Stand]:
    async with serving(**settings) as (engine, metrics, client), client.ws_connect(ROUTE) as socket:
        stand = Stand(engine, metrics, Robot(socket))
        await stand.robot.hear()
        yield stand


async def test_an_observation_is_answered_by_actions() -> None:
    async with robot_gateway() as (_, client), connected(client) as robot:
        await robot.say(observation(seed=1))
        first = await robot.hear()
        actions = np.asarray(first["actions"])
        assert (actions.dtype, actions.shape) == (np.float32, (CONFIG.horizon, CONFIG.action_dim))
        assert (first["observation"], first["dropped"]) == (0, 0)
        assert cast("float", first["server_timing/infer_ms"]) > 0
        await robot.say(observation(seed=1))
        again = await robot.hear()
        assert (np.asarray(again["actions"]) == actions).all()
        await robot.say(observation(seed=2))
        assert (np.asarray((await robot.hear())["actions"]) != actions).any()
        await robot.say({"endpoint": "reset"})
        assert await robot.hear() == {"status": "reset successful"}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("text", "invalid_msgpack"),
        (b"\xc1", "invalid_msgpack"),
        (b"\x80", "missing_required_parameter"),
        (b"\x81\xa8endpoint\xa1x", "invalid_value"),
    ],
)
async def test_bad_input_is_refused_and_the_connection_lives(
    message: str | bytes, code: str
) -> None:
    async with standing() as stand:
        if isinstance(message, str):
            await stand.robot.socket.send_str(message)
        else:
            await stand.robot.socket.send_bytes(message)
        assert (await stand.robot.fault())["code"] == code
        await stand.robot.say(observation(seed=1))
        await stand.answer(1)
        assert "actions" in await stand.robot.hear()
        assert stand.counted("refused") == stand.counted("answered") == 1


async def test_the_newest_observation_wins() -> None:
    async with standing() as stand:
        for seed in (1, 2, 3):
            await stand.robot.say(observation(seed=seed))
            if seed == 1:
                await stand.asked(1)
        await until(lambda: stand.counted("stale") == 1)
        await stand.answer(1)
        first = await stand.robot.hear()
        await stand.answer(3)
        last = await stand.robot.hear()
        assert (first["observation"], last["observation"], last["dropped"]) == (0, 2, 1)
        assert len(stand.engine.submitted) == 2


async def test_a_reset_forgets_what_waits() -> None:
    async with standing() as stand:
        await stand.robot.say(observation(seed=1))
        await stand.asked(1)
        await stand.robot.say(observation(seed=2))
        await stand.robot.say({"endpoint": "reset"})
        assert await stand.robot.hear() == {"status": "reset successful"}
        assert stand.counted("stale") == 1


async def test_actions_that_come_too_late_are_given_up() -> None:
    # Long enough for a busy machine to have begun: what waited too long is not.
    async with standing(deadline_s=1.0) as stand:
        await stand.robot.say(observation(seed=1))
        await stand.asked(1)
        assert (await stand.robot.fault())["code"] == "stage_timeout"
        assert len(stand.engine.cancelled) == 1
        assert stand.counted("late") == 1
        await stand.robot.say({"endpoint": "reset"})
        await stand.robot.hear()


async def test_one_that_waited_too_long_is_not_begun() -> None:
    async with standing(deadline_s=0.05) as stand:
        await stand.robot.say(observation(seed=1))
        await stand.asked(1)
        await stand.robot.say(observation(seed=2))
        await stand.robot.fault()
        await stand.robot.fault()
        assert stand.counted("late") == 2


@pytest.mark.parametrize("silent", [False, True])
async def test_a_policy_that_fails_ends_nothing(silent: bool) -> None:
    async with standing() as stand:
        await stand.robot.say(observation(seed=1))
        request_id = await stand.asked(1)
        if silent:
            stand.engine.complete(request_id)
        else:
            stand.engine.fail(request_id, "out_of_memory")
        code = "stage_failed" if silent else "out_of_memory"
        assert (await stand.robot.fault())["code"] == code
        await stand.robot.say(observation(seed=2))
        await stand.answer(2)
        await stand.robot.hear()
        assert stand.counted("failed") == 1


async def test_the_work_ends_with_its_robot() -> None:
    async with standing() as stand:
        await stand.robot.say(observation(seed=1))
        request_id = await stand.asked(1)
        await stand.robot.socket.close()
        await until(lambda: request_id in stand.engine.cancelled)


async def test_a_silent_robot_is_let_go_but_not_while_it_waits() -> None:
    async with standing(idle_timeout_s=0.5, deadline_s=1.5) as stand:
        await stand.robot.say(observation(seed=1))
        assert (await stand.robot.fault())["code"] == "stage_timeout"
        assert (await stand.robot.fault())["code"] == "idle_timeout"
        assert (await stand.robot.socket.receive(timeout=PATIENCE_S)).type is WSMsgType.CLOSE
        assert stand.robot.socket.close_code == WSCloseCode.GOING_AWAY


async def test_a_message_that_is_too_large_ends_its_connection() -> None:
    async with standing(max_message_bytes=1024) as stand:
        await stand.robot.socket.send_bytes(bytes(2000))
        assert (await stand.robot.socket.receive(timeout=PATIENCE_S)).type is WSMsgType.CLOSE
        assert stand.robot.socket.close_code == WSCloseCode.MESSAGE_TOO_BIG


async def refusal(
    client: TestClient[web.Request, web.Application] | aiohttp.ClientSession, query: str = ""
) -> int:
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await client.ws_connect(ROUTE + query)
    return caught.value.status


async def test_who_may_not_connect() -> None:
    async with serving(max_connections=1) as (_, _, client), client.ws_connect(ROUTE):
        assert await refusal(client) == 503
        assert await refusal(client, "?model=nobody") == 404
    async with serving({}) as (_, _, client):
        assert await refusal(client) == 400
    async with robot_gateway() as (app, _):
        url = f"http://127.0.0.1:{app.url.rpartition(':')[2]}"
        async with aiohttp.ClientSession(url) as stranger:
            assert await refusal(stranger) == 401


async def test_policies_are_listed_with_the_models() -> None:
    async with robot_gateway() as (_, client):
        page = await (await client.get("/v1/models")).json()
        assert [each["id"] for each in page["data"]] == ["echo", "tiny_policy"]
        card = await (await client.get("/v1/models/tiny_policy")).json()
        assert card["capabilities"]["robots"]
        assert not card["capabilities"]["chat"]
