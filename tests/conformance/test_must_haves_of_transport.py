"""What stock clients rely on below the messages: keys, subprotocols, sizes and signs of life.

The numbers are those of ``test_must_haves``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from duologue.gateway.settings import GatewaySettings
from duologue.settings import Settings
from tests.conformance.strict_client import SMALLEST_CLIENT_LIMIT_BYTES, answers, strict_client
from tests.conformance.talking_gateway import (
    API_KEY,
    TalkingGateway,
    talking_gateway,
    talking_settings,
)
from tests.unit.gateway.raw_websocket import PING, PONG, TEXT, connected

BEARER = {"Authorization": f"Bearer {API_KEY}"}
AS_PROTOCOL = f"openai-insecure-api-key.{API_KEY}"


@pytest.fixture
async def gateway(settings: Settings) -> AsyncIterator[TalkingGateway]:
    async with talking_gateway(settings) as gateway:
        yield gateway


# 29


@pytest.mark.parametrize(
    ("headers", "offered", "selected"),
    [
        (BEARER, None, None),
        ({"api-key": API_KEY}, None, None),
        ({}, ["realtime", AS_PROTOCOL], "realtime"),
        ({}, [AS_PROTOCOL, "realtime"], "realtime"),
        ({}, ["realtime", AS_PROTOCOL, "openai-agents-sdk.0.20.0"], "realtime"),
        (
            {},
            ["realtime", AS_PROTOCOL, "openai-organization.o", "openai-project.p"],
            "realtime",
        ),
        (BEARER, ["realtime"], "realtime"),
    ],
)
async def test_29_a_key_may_come_in_three_ways_and_realtime_alone_is_selected(
    gateway: TalkingGateway,
    headers: dict[str, str],
    offered: list[str] | None,
    selected: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with connect(
        f"{gateway.ws_url}?model=m", additional_headers=headers, subprotocols=offered
    ) as client:
        assert client.subprotocol == selected
        assert json.loads(await client.recv())["type"] == "session.created"
        assert client.response is not None
        assert API_KEY not in str(client.response.headers)
    ours = [record.getMessage() for record in caplog.records if "websockets" not in record.name]
    assert API_KEY not in "".join(ours)


@pytest.mark.parametrize(
    ("headers", "offered"),
    [
        ({}, ["realtime"]),
        ({"Authorization": "Bearer wrong"}, None),
        ({"Authorization": "Bearer wrong"}, ["realtime", AS_PROTOCOL]),
        ({}, ["realtime", "openai-insecure-api-key.wrong"]),
    ],
)
async def test_29_a_missing_or_wrong_key_is_refused_before_the_upgrade(
    gateway: TalkingGateway, headers: dict[str, str], offered: list[str] | None
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(gateway.ws_url, additional_headers=headers, subprotocols=offered)
    answer = refused.value.response
    error = json.loads(answer.body)["error"]
    assert answer.status_code == 401
    assert set(error) >= {"message", "type", "param", "code"}
    assert error["code"] == "invalid_api_key"


# 31


def item(*content: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"id": "big", "type": "message", "role": "user", "content": list(content)}
    return {"type": "conversation.item.create", "item": message | more}


def text(words: str) -> dict[str, str]:
    return {"type": "input_text", "text": words}


SPEECH = {"type": "input_audio", "audio": "A" * 4_000_000, "transcript": "hello"}


@pytest.mark.parametrize(
    "event",
    [
        item(SPEECH),
        item(text("é" * 200_000)),
        {"type": "session.update", "session": {"instructions": "字" * 200_000}},
    ],
    ids=["speech", "text", "instructions"],
)
async def test_31_what_is_large_and_taken_comes_back_in_small_messages(
    gateway: TalkingGateway, event: dict[str, Any]
) -> None:
    async with strict_client(gateway) as client:
        kinds = [each["type"] for each in await answers(client, event)]
        assert "error" not in kinds
        assert kinds
        if "item" in event:
            retrieve = {"type": "conversation.item.retrieve", "item_id": "big"}
            (retrieved,) = await answers(client, retrieve)
            assert retrieved["type"] == "conversation.item.retrieved"


@pytest.mark.parametrize(
    ("event", "param"),
    [
        (item(*[text("x" * 200_000)] * 8), "item"),
        (item(text("\x01" * 200_000)), "item"),
        ({"type": "session.update", "session": {"instructions": "\x01" * 200_000}}, "session"),
        (
            {
                "type": "session.update",
                "session": {
                    "tools": [
                        {"type": "function", "name": f"f{n}", "description": "d" * 99_000}
                        for n in range(9)
                    ]
                },
            },
            "session",
        ),
    ],
    ids=["many parts", "escapes", "escaped instructions", "tools"],
)
async def test_31_what_could_not_come_back_is_refused(
    gateway: TalkingGateway, event: dict[str, Any], param: str
) -> None:
    async with strict_client(gateway) as client:
        (refused,) = await answers(client, event | {"event_id": "mine"})
        error = refused["error"]
        assert (error["code"], error["param"]) == ("limit_exceeded", param)
        assert error["event_id"] == "mine"


async def test_31_an_audio_delta_is_a_fraction_of_a_second(gateway: TalkingGateway) -> None:
    async with strict_client(gateway) as client:
        await answers(client, item(text("long")))
        await client.send(json.dumps({"type": "response.create"}))
        sizes = []
        while True:
            raw = await client.recv(decode=False)
            sizes.append(len(raw))
            if json.loads(raw)["type"] == "response.done":
                break
        assert max(sizes) < SMALLEST_CLIENT_LIMIT_BYTES / 16


# 32


@pytest.mark.parametrize("private_reader", [True, False])
async def test_32_pings_are_answered_and_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private_reader: bool
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    door = GatewaySettings(
        api_keys=(API_KEY,), heartbeat_s=0.3, private_reader=private_reader, close_timeout_s=0.5
    )
    async with (
        talking_gateway(talking_settings(tmp_path, gateway=door)) as gateway,
        connected(gateway.port) as peer,
    ):
        await peer.upgrade("/v1/realtime", **BEARER)
        assert (await peer.event())["type"] == "session.created"
        peer.send(PING, b"are you there?")
        frames = [await peer.frame()]
        while frames[-1].opcode != PONG:
            frames.append(await peer.frame())
        assert frames[-1].payload == b"are you there?"
        # Each answer earns another question, and the connection lives.
        for _ in range(3):
            while (await peer.frame()).opcode != PING:
                pass
            peer.send(PONG)
        peer.send(TEXT, b'{"type":"input_audio_buffer.clear"}')
        assert (await peer.event())["type"] == "input_audio_buffer.cleared"
        # Without an answer it is given up.
        while (await peer.frame()).opcode != PING:
            pass
        await peer.lost()
