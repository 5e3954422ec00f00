from __future__ import annotations

from typing import Any

from duologue.gateway.settings import GatewaySettings
from tests.unit.gateway.raw_websocket import connected
from tests.unit.gateway.small_server import small_server


def card(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "duologue",
        "capabilities": {
            "realtime": True,
            "chat": False,
            "speech": False,
            "transcription": False,
        },
        "voices": ["default"],
    }


async def test_models_are_listed_for_those_who_may_open_them() -> None:
    settings = GatewaySettings(api_keys=("sesame",))
    async with small_server(settings) as server, connected(server.port) as peer:
        assert (await peer.ask("/v1/models")).status == 401
        answer = await peer.ask("/v1/models", {"Authorization": "Bearer sesame"})
        assert answer.json == {"object": "list", "data": [card("echo"), card("other")]}


async def test_one_model_is_described_and_an_unknown_one_is_not_found() -> None:
    async with small_server() as server, connected(server.port) as peer:
        assert (await peer.ask("/v1/models/other")).json == card("other")
    async with small_server() as server, connected(server.port) as peer:
        answer = await peer.ask("/v1/models/none")
        assert answer.status == 404
        assert answer.json["error"]["code"] == "model_not_found"
