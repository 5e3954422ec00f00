from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from duologue.gateway.settings import GatewaySettings
from duologue.gateway.telephony.endpoint import CARRIERS
from duologue.gateway.telephony.settings import TelephonySettings
from duologue.gateway.telephony.signature import HEADER, signature
from duologue.sessions.settings import SessionSettings
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import TEXT, UPGRADE, RawWebSocket, connected
from tests.unit.gateway.small_server import SmallServer, small_server

TWILIO = "/v1/telephony/twilio/stream"
TOKEN = "token of the account"
KEYS = GatewaySettings(api_keys=("sesame",))


def start(**parameters: str) -> dict[str, Any]:
    return {"event": "start", "start": {"streamSid": "MZ1", "customParameters": parameters}}


def media(payload: bytes) -> dict[str, Any]:
    text = base64.b64encode(payload).decode()
    return {"event": "media", "media": {"track": "inbound", "payload": text}}


def say(peer: RawWebSocket, message: dict[str, Any]) -> None:
    peer.send(TEXT, json.dumps(message).encode())


async def settled(server: SmallServer) -> None:
    await server.realtime.wait_closed(PATIENCE_S)
    assert len(server.sessions) == 0
    assert len(server.wheel) == 0


async def test_a_call_is_echoed_in_the_carriers_own_words_until_it_hangs_up() -> None:
    async with small_server(KEYS) as server, connected(server.port) as peer:
        await peer.upgrade(TWILIO)
        say(peer, {"event": "connected", "protocol": "Call"})
        say(peer, start(key="sesame", model="echo", greeting=""))
        spoken = bytes(range(128, 208)) * 2
        for _ in range(20):
            say(peer, media(spoken))
        echoed = json.loads((await peer.frame()).payload)
        assert (echoed["event"], echoed["streamSid"]) == ("media", "MZ1")
        assert len(base64.b64decode(echoed["media"]["payload"])) == 160
        assert server.metrics.key_sessions["key-1"].value == 1
        say(peer, {"event": "stop"})
        assert (await peer.goodbye()).code == 1000
        peer.close()
        await settled(server)


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_each_carrier_has_its_address(carrier: str) -> None:
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade(f"/v1/telephony/{carrier}/stream")
        peer.close()
        assert (await peer.goodbye()).code == 1000
        await settled(server)


@pytest.mark.parametrize(
    ("parameters", "code", "reason"),
    [
        ({}, 1008, "API key is required"),
        ({"key": "wrong"}, 1008, "not valid"),
        ({"key": "sesame", "voice": "nope"}, 1008, "nope"),
    ],
)
async def test_a_call_that_may_not_begin_is_told_why(
    parameters: dict[str, str], code: int, reason: str
) -> None:
    async with small_server(KEYS) as server, connected(server.port) as peer:
        await peer.upgrade(TWILIO)
        say(peer, start(**parameters))
        goodbye = await peer.goodbye()
        assert goodbye.code == code
        assert reason in goodbye.reason
        peer.close()
        await settled(server)


async def test_a_key_of_the_handshake_is_checked_before_the_upgrade() -> None:
    async with small_server(KEYS) as server, connected(server.port) as peer:
        answer = await peer.ask(TWILIO, UPGRADE | {"api-key": "wrong"})
        assert (answer.status, answer.json["error"]["code"]) == (401, "invalid_api_key")
        await peer.upgrade(TWILIO, api_key="sesame")
        say(peer, start(greeting=""))
        for _ in range(20):
            say(peer, media(b"\x80" * 160))
        await peer.frame()
        say(peer, {"event": "stop"})
        await peer.goodbye()
        peer.close()
        await settled(server)


async def test_a_signed_handshake_needs_no_key_and_counts_as_telephony() -> None:
    telephony = TelephonySettings(twilio_auth_token=TOKEN, max_calls=1, greeting="")
    settings = KEYS.model_copy(update={"telephony": telephony})
    async with (
        small_server(settings) as server,
        connected(server.port) as first,
        connected(server.port) as second,
    ):
        signed = {HEADER.replace("-", "_"): signature(TOKEN.encode(), f"wss://127.0.0.1{TWILIO}")}
        await first.upgrade(TWILIO, **signed)
        say(first, start())
        for _ in range(20):
            say(first, media(b"\x80" * 160))
        await first.frame()
        assert server.metrics.key_sessions["telephony"].value == 1
        await second.upgrade(TWILIO, **signed)
        say(second, start())
        goodbye = await second.goodbye()
        assert goodbye.code == 1013
        for peer in (first, second):
            peer.close()
        await settled(server)


async def test_a_web_page_is_no_carrier() -> None:
    async with small_server() as server, connected(server.port) as peer:
        answer = await peer.ask(TWILIO, UPGRADE | {"Origin": "https://evil.example"})
        assert (answer.status, answer.json["error"]["code"]) == (403, "origin_not_allowed")


async def test_a_full_server_takes_no_call() -> None:
    sessions = SessionSettings(max_sessions=1)
    async with (
        small_server(sessions=sessions) as server,
        connected(server.port) as first,
        connected(server.port) as second,
    ):
        await first.upgrade("/v1/realtime")
        answer = await second.ask(TWILIO, UPGRADE)
        assert (answer.status, answer.json["error"]["code"]) == (503, "server_full")


async def test_a_carrier_that_does_not_say_what_the_call_is_is_not_waited_for() -> None:
    settings = GatewaySettings(telephony=TelephonySettings(start_timeout_s=0.05))
    async with small_server(settings) as server, connected(server.port) as peer:
        await peer.upgrade(TWILIO)
        goodbye = await peer.goodbye()
        assert (goodbye.code, goodbye.reason) == (1008, "the carrier did not say what the call is")
        peer.close()
        await settled(server)
