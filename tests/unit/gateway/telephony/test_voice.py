from __future__ import annotations

from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest

from duologue.gateway.settings import GatewaySettings
from duologue.gateway.telephony.settings import TelephonySettings
from duologue.gateway.telephony.signature import HEADER, signature
from tests.unit.gateway.raw_websocket import Response, connected
from tests.unit.gateway.small_server import SmallServer, small_server

PATH = "/v1/telephony/twilio/voice"
TOKEN = "token of the account"
URL = "https://voice.example.org"
SIGNED = GatewaySettings(
    api_keys=("sesame",),
    telephony=TelephonySettings(twilio_auth_token=TOKEN, public_url=URL, max_calls=3),
)
FORM = {"CallSid": "CA1", "From": "+14158675310", "To": "+1 800", "Empty": "", "Name": "Jörg"}


async def ask(server: SmallServer, headers: dict[str, str], form: dict[str, str]) -> Response:
    body = urlencode(form).encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    length = {"Content-Length": str(len(body))}
    async with connected(server.port) as peer:
        return await peer.ask(PATH, {**headers, **kind, **length}, behind=body, method="POST")


def sign(form: dict[str, str], token: str = TOKEN) -> dict[str, str]:
    return {HEADER: signature(token.encode(), URL + PATH, form.items())}


async def test_a_signed_request_is_answered_with_where_to_stream_the_call_to() -> None:
    async with small_server(SIGNED) as server:
        answer = await ask(server, sign(FORM), FORM)
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/xml")
        (stream,) = ElementTree.fromstring(answer.body).findall("Connect/Stream")
        assert stream.get("url") == "wss://voice.example.org/v1/telephony/twilio/stream"
        parameter = stream.find("Parameter")
        assert parameter.get("name") == "key"
        ticket = parameter.get("value")
        assert len(ticket) <= 500 - len("key")  # what Twilio takes of one parameter
        caller = server.access.check_call({"Authorization": f"Bearer {ticket}"})
        assert (caller.owner.name, caller.owner.max_sessions) == ("telephony", 3)


@pytest.mark.parametrize(
    "headers", [{}, sign(FORM, "another token"), sign(FORM | {"From": "+1"}), {"api-key": "sesame"}]
)
async def test_without_the_signature_nobody_gets_a_ticket(headers: dict[str, str]) -> None:
    async with small_server(SIGNED) as server:
        answer = await ask(server, headers, FORM)
        assert answer.status == 401
        assert "public_url" in answer.json["error"]["message"]
        assert TOKEN not in answer.body.decode()


async def test_without_a_token_the_api_key_is_asked_for() -> None:
    settings = GatewaySettings(api_keys=("sesame",), query_keys=True)
    async with small_server(settings) as server:
        assert (await ask(server, {}, FORM)).status == 401
        answer = await ask(server, {"api-key": "sesame"}, FORM)
        (stream,) = ElementTree.fromstring(answer.body).findall("Connect/Stream")
        assert stream.get("url") == "wss://127.0.0.1/v1/telephony/twilio/stream"


async def test_a_form_that_is_far_too_long_is_refused() -> None:
    async with small_server(SIGNED) as server:
        answer = await ask(server, sign(FORM), {"a": "x" * 70_000})
        assert (answer.status, answer.json["error"]["code"]) == (413, "message_too_large")
