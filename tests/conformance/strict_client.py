"""A client that holds every event against the SDK's classes, and takes no large ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.conformance.sdk_schema import GA, SdkSchema
from tests.conformance.talking_gateway import API_KEY, TalkingGateway
from tests.patience import PATIENCE_S

SMALLEST_CLIENT_LIMIT_BYTES = 1 << 20


@asynccontextmanager
async def strict_client(gateway: TalkingGateway) -> AsyncIterator[ClientConnection]:
    """A client with the smallest limit there is: a larger message ends its connection."""
    async with (
        asyncio.timeout(PATIENCE_S),
        connect(
            gateway.ws_url,
            additional_headers={"Authorization": f"Bearer {API_KEY}"},
            max_size=SMALLEST_CLIENT_LIMIT_BYTES,
        ) as client,
    ):
        assert json.loads(await client.recv())["type"] == "session.created"
        yield client


async def answers(
    client: ClientConnection, event: dict[str, Any], schema: SdkSchema = GA
) -> list[dict[str, Any]]:
    """Send an event, and return what it led to at once."""
    await client.send(json.dumps(event, ensure_ascii=False))
    await client.send(json.dumps({"type": "conversation.item.retrieve", "item_id": "nothing"}))
    found: list[dict[str, Any]] = []
    while True:
        raw = await client.recv(decode=False)
        schema.check(raw)
        found.append(json.loads(raw))
        if found[-1].get("error", {}).get("code") == "item_retrieve_invalid_item_id":
            return found[:-1]
