"""What stock clients rely on before a call begins: keys, subprotocols, cross-origin answers."""

from __future__ import annotations

import json
from collections.abc import Sequence

import aiohttp
import pytest
import websockets

from duologue.gateway.settings import GatewaySettings
from duologue.settings import Settings
from tests.conformance.talking_gateway import API_KEY, TalkingGateway, talking_gateway

PAGE = "https://app.example"
NODE_IN_A_BROWSER = ["realtime", f"openai-insecure-api-key.{API_KEY}"]
AGENTS_IN_A_BROWSER = [*NODE_IN_A_BROWSER, "openai-agents-sdk.0.20.0"]
WITH_ORGANISATION = [*NODE_IN_A_BROWSER, "openai-organization.org", "openai-project.proj"]


def with_page(settings: Settings) -> Settings:
    gateway = GatewaySettings(port=0, api_keys=(API_KEY,), allowed_origins=(PAGE,))
    return settings.model_copy(update={"gateway": gateway})


async def greeting(
    gateway: TalkingGateway, headers: dict[str, str], protocols: Sequence[str] | None
) -> tuple[str, str | None]:
    async with websockets.connect(
        f"{gateway.ws_url}?model=gpt-realtime",
        additional_headers=headers,
        subprotocols=protocols,
    ) as socket:
        return json.loads(await socket.recv())["type"], socket.subprotocol


@pytest.mark.parametrize(
    ("headers", "protocols", "selected"),
    [
        ({"Authorization": f"Bearer {API_KEY}"}, None, None),
        ({"api-key": API_KEY}, None, None),
        ({"Authorization": f"Bearer {API_KEY}"}, ["realtime"], "realtime"),
        ({}, NODE_IN_A_BROWSER, "realtime"),
        ({"Origin": PAGE}, AGENTS_IN_A_BROWSER, "realtime"),
        ({}, WITH_ORGANISATION, "realtime"),
    ],
)
async def test_must_have_29_keys_come_in_wherever_clients_put_them(
    settings: Settings,
    headers: dict[str, str],
    protocols: list[str] | None,
    selected: str | None,
) -> None:
    async with talking_gateway(with_page(settings)) as gateway:
        assert await greeting(gateway, headers, protocols) == ("session.created", selected)


async def test_must_have_29_a_refusal_comes_before_the_upgrade_in_the_shape_of_the_api(
    settings: Settings,
) -> None:
    async with talking_gateway(settings) as gateway:
        with pytest.raises(websockets.InvalidStatus) as refused:
            await greeting(gateway, {"Authorization": "Bearer wrong"}, None)
        response = refused.value.response
        assert response.status_code == 401
        assert response.body is not None
        error = json.loads(response.body)["error"]
        assert set(error) >= {"message", "type", "param", "code"}
        assert error["code"] == "invalid_api_key"


async def test_must_have_33_a_page_may_ask_and_read_on_every_route(settings: Settings) -> None:
    asks = "authorization,content-type,x-openai-agents-sdk"
    async with (
        talking_gateway(with_page(settings)) as gateway,
        aiohttp.ClientSession(headers={"Origin": PAGE}) as page,
    ):
        paths = [*gateway.app.paths, ("POST", "/v1/realtime/calls"), ("GET", "/v1/realtime")]
        assert len(paths) > 8
        for method, path in paths:
            url = gateway.app.url + path.replace("{", "").replace("}", "")
            preflight = {
                "Access-Control-Request-Method": method,
                "Access-Control-Request-Headers": asks,
            }
            async with page.options(url, headers=preflight) as answer:
                assert answer.status == 204
                assert answer.headers["Access-Control-Allow-Origin"] == PAGE
                assert answer.headers["Access-Control-Allow-Headers"] == asks
            async with page.request(method, url) as answer:
                assert answer.headers["Access-Control-Allow-Origin"] == PAGE
                assert "Location" in answer.headers["Access-Control-Expose-Headers"]
