"""Client secrets with OpenAI's own SDK: a server makes one, and a browser has nothing else."""

from __future__ import annotations

import asyncio

import pytest
from openai import AsyncOpenAI, PermissionDeniedError

from duologue.settings import Settings
from tests.conformance.talking_gateway import API_KEY, talking_gateway
from tests.patience import PATIENCE_S

TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
SESSION = {
    "type": "realtime",
    "model": "gpt-realtime",
    "instructions": "Be kind.",
    "tools": [TOOL],
    "audio": {"input": {"format": {"type": "audio/pcmu"}, "turn_detection": None}},
}


async def test_a_secret_of_the_sdk_opens_a_call_that_begins_as_it_was_bound(
    settings: Settings,
) -> None:
    async with (
        talking_gateway(settings) as gateway,
        AsyncOpenAI(api_key=API_KEY, base_url=gateway.http_url, max_retries=0) as server,
        asyncio.timeout(PATIENCE_S),
    ):
        made = await server.realtime.client_secrets.create(
            session=SESSION, expires_after={"anchor": "created_at", "seconds": 60}
        )
        assert made.value.startswith("ek_")
        assert made.session.type == "realtime"
        assert made.session.instructions == "Be kind."
        async with AsyncOpenAI(
            api_key=made.value, base_url=gateway.http_url, max_retries=0
        ) as client:
            for _ in range(2):  # as often as one likes
                async with client.realtime.connect(model="gpt-realtime") as connection:
                    begun = await connection.recv()
                    assert begun.type == "session.created"
                    session = begun.session
                    assert session.instructions == "Be kind."
                    assert [tool.name for tool in session.tools] == ["weather"]
                    assert session.audio.input.format.type == "audio/pcmu"
                    assert session.audio.input.turn_detection is None
            with pytest.raises(PermissionDeniedError) as refused:
                await client.models.list()
            assert refused.value.code == "api_key_not_allowed"


async def test_a_secret_of_the_beta_sdk_opens_a_call_of_that_dialect(settings: Settings) -> None:
    async with (
        talking_gateway(settings) as gateway,
        AsyncOpenAI(api_key=API_KEY, base_url=gateway.http_url, max_retries=0) as server,
        asyncio.timeout(PATIENCE_S),
    ):
        made = await server.beta.realtime.sessions.create(
            instructions="Be kind.", modalities=["audio", "text"], turn_detection=None
        )
        key = made.client_secret.value
        ws_base = gateway.ws_url.removesuffix("/realtime")
        async with (
            AsyncOpenAI(api_key=key, websocket_base_url=ws_base) as client,
            client.beta.realtime.connect(model="gpt-4o-realtime-preview") as connection,
        ):
            begun = await connection.recv()
            assert begun.type == "session.created"
            assert begun.session.instructions == "Be kind."
            assert begun.session.turn_detection is None
