"""Several gateways before one session host: nobody can tell which one answers."""

from __future__ import annotations

import base64
import json
from typing import Any

import aiohttp
import pytest

from duologue.gateway.settings import ApiKeySettings, GatewaySettings
from duologue.protocol.limits import MAX_APPEND_BYTES
from duologue.settings import Settings
from tests.fakes.edged_gateway import EdgedGateway, edged_gateway
from tests.fakes.small_gateway import small_settings
from tests.faults.gateway_line import UPDATE
from tests.patience import PATIENCE_S

ADMIN = "admin-key-of-the-tests"


def settings(**gateway: Any) -> Settings:
    small = small_settings()
    return small.model_copy(
        update={"gateway": GatewaySettings(port=0, drain_timeout_s=0, **gateway)}
    )


async def event_of(socket: aiohttp.ClientWebSocketResponse, kind: str) -> dict[str, Any]:
    while True:
        event = json.loads(await socket.receive_str())
        if event["type"] == kind:
            assert isinstance(event, dict)
            return event


async def lose(call: aiohttp.ClientWebSocketResponse) -> None:
    """As when a cable is cut: no goodbye."""
    transport = call.get_extra_info("transport") or call._response.connection.transport  # type: ignore[union-attr]
    transport.abort()


async def test_a_call_is_held_through_an_edge() -> None:
    async with edged_gateway(settings()) as server, aiohttp.ClientSession() as http:
        async with http.ws_connect(f"{server.urls[0]}/v1/realtime?model=scripted") as call:
            await event_of(call, "session.created")
            assert len(server.host.side.sessions) == 1
            await call.send_json({"type": "response.create"})
            done = await event_of(call, "response.done")
            assert done["response"]["status"] == "completed"
            await call.send_json({"type": "no.such.thing", "event_id": "e1"})
            error = (await event_of(call, "error"))["error"]
            assert (error["code"], error["event_id"]) == ("unknown_event_type", "e1")
        await gone(server)


async def gone(server: EdgedGateway) -> None:
    await server.host.side.sessions.wait_empty(PATIENCE_S)
    assert len(server.host.side.sessions) == 0


async def test_a_client_resumes_at_whichever_edge_answers() -> None:
    async with edged_gateway(settings(), edges=2) as server, aiohttp.ClientSession() as http:
        first, second = server.urls
        async with http.ws_connect(f"{first}/v1/realtime?resumable=1") as call:
            created = await event_of(call, "session.created")
            await call.send_json({"type": "session.update", "session": {"instructions": "Sing."}})
            await event_of(call, "session.updated")
            await lose(call)
        query = f"session_id={created['session']['id']}&resume_token={created['resume_token']}"
        async with http.ws_connect(f"{second}/v1/realtime?{query}") as call:
            again = await event_of(call, "session.created")
            assert again["session"]["id"] == created["session"]["id"]
            assert again["session"]["instructions"] == "Sing."
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await http.ws_connect(f"{first}/v1/realtime?{query}x")
        assert caught.value.status == 403


async def test_a_duplex_session_is_described_late_and_taken_over_at_the_other_edge() -> None:
    async with edged_gateway(settings(), edges=2) as server, aiohttp.ClientSession() as http:
        first, second = (f"{url}/v1/duplex?autostart=0" for url in server.urls)
        async with http.ws_connect(first) as call, http.ws_connect(second) as other:
            await call.send_json({"type": "session.update", "session": {"model": "echo"}})
            created = await event_of(call, "session.created")
            await other.send_json(
                {
                    "type": "session.resume",
                    "session_id": created["session"]["id"],
                    "resume_token": created["resume_token"],
                    "last_received_server_event_seq": created["server_event_seq"],
                }
            )
            resumed = await event_of(other, "session.resumed")
            assert resumed["session_id"] == created["session"]["id"]
            await event_of(call, "session.replaced")
            assert (await call.receive()).type is aiohttp.WSMsgType.CLOSE
            await other.send_json({"type": "session.close", "reason": "enough"})
            assert (await event_of(other, "session.closed"))["reason"] == "enough"
        await gone(server)


async def test_a_refusal_comes_before_the_upgrade_and_says_why() -> None:
    small = settings()
    limited = small.model_copy(
        update={"sessions": small.sessions.model_copy(update={"max_sessions": 1})}
    )
    async with edged_gateway(limited, edges=2) as server, aiohttp.ClientSession() as http:
        first, second = (f"{url}/v1/realtime" for url in server.urls)
        async with http.ws_connect(first) as call:
            await event_of(call, "session.created")
            async with http.get(second, headers=UPGRADE) as refused:
                assert refused.status == 503
                assert (await refused.json())["error"]["code"] == "server_full"
                assert refused.headers["Retry-After"]


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


async def test_a_secret_of_one_edge_opens_a_call_at_another() -> None:
    keyed = settings(api_keys=("sesame-of-the-tests",))
    async with edged_gateway(keyed, edges=2) as server, aiohttp.ClientSession() as http:
        first, second = server.urls
        async with http.post(
            f"{first}/v1/realtime/client_secrets",
            headers={"Authorization": "Bearer sesame-of-the-tests"},
            json={"session": {"type": "realtime", "model": "echo", "instructions": "Bound."}},
        ) as answer:
            secret = await answer.json()
        assert secret["session"]["instructions"] == "Bound."
        bearer = {"Authorization": f"Bearer {secret['value']}"}
        async with http.ws_connect(f"{second}/v1/realtime", headers=bearer) as call:
            created = await event_of(call, "session.created")
            assert created["session"]["instructions"] == "Bound."
            (look,) = server.host.side.sessions.look()
            assert look.key == "key-1"


async def test_requests_of_a_key_are_counted_together() -> None:
    key = ApiKeySettings(name="kitchen", key="open-sesame-kitchen", requests_per_minute=3)  # type: ignore[arg-type]
    async with (
        edged_gateway(settings(named_keys=(key,)), edges=2) as server,
        aiohttp.ClientSession(headers={"Authorization": "Bearer open-sesame-kitchen"}) as http,
    ):
        statuses = []
        for attempt in range(5):
            async with http.get(f"{server.urls[attempt % 2]}/v1/models") as answer:
                statuses.append(answer.status)
        assert statuses == [200, 200, 200, 429, 429]


async def test_who_runs_the_server_sees_all_of_it_at_any_edge() -> None:
    async with (
        edged_gateway(settings(admin_key=ADMIN), edges=2) as server,
        aiohttp.ClientSession() as http,
    ):
        first, second = server.urls
        async with http.ws_connect(f"{first}/v1/realtime?model=echo") as call:
            await event_of(call, "session.created")
            bearer = {"Authorization": f"Bearer {ADMIN}"}
            async with http.get(f"{second}/debug/sessions", headers=bearer) as answer:
                (session,) = (await answer.json())["sessions"]
                assert session["model"] == "echo"
            async with http.get(f"{second}/metrics") as answer:
                page = await answer.text()
            assert 'duologue_sessions_active{process="host"} 1.0' in page
            assert 'route="GET /v1/realtime"' in page or 'process="edge-0"' in page
            for edge in ("edge-0", "edge-1"):
                assert f'duologue_build_info{{process="{edge}"' in page
            async with http.get(f"{second}/ready") as answer:
                assert answer.status == 200
                assert (await answer.json())["workers"] >= 1


async def test_an_edge_that_leaves_lets_its_clients_go_and_their_sessions_live() -> None:
    async with edged_gateway(settings(), edges=1) as server, aiohttp.ClientSession() as http:
        call = await http.ws_connect(f"{server.urls[0]}/v1/realtime?resumable=1")
        await event_of(call, "session.created")
        server.edges[0].host.leave("server_shutting_down")
        closed = await call.receive()
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1001)
        assert len(server.host.side.sessions) == 1
        server.host.side.sessions.close_all("closed")


async def test_without_its_host_an_edge_says_so_and_is_not_ready() -> None:
    async with edged_gateway(settings(), edges=1) as server, aiohttp.ClientSession() as http:
        url = server.urls[0]
        call = await http.ws_connect(f"{url}/v1/realtime")
        await event_of(call, "session.created")
        await server.host.server.stop()
        error = (await event_of(call, "error"))["error"]
        assert error["code"] == "session_host_lost"
        closed = await call.receive()
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1012)
        async with http.get(f"{url}/ready") as answer:
            assert answer.status == 503
            assert (await answer.json())["error"]["code"] == "session_host_lost"
        async with http.get(f"{url}/v1/realtime", headers=UPGRADE) as refused:
            assert refused.status == 503


async def test_c30_the_largest_append_passes_a_link_and_calls_beside_it_go_on() -> None:
    async with edged_gateway(settings()) as server, aiohttp.ClientSession() as http:
        url = f"{server.urls[0]}/v1/realtime?model=scripted"
        async with http.ws_connect(url) as call, http.ws_connect(url) as beside:
            for each in (call, beside):
                await each.send_json(UPDATE)
                await event_of(each, "session.updated")
            for more, code in ((0, None), (1, "limit_exceeded")):
                audio = base64.b64encode(bytes(MAX_APPEND_BYTES + more)).decode()
                append = {"type": "input_audio_buffer.append", "event_id": "e1", "audio": audio}
                await call.send_json(append)
                await beside.send_json({"type": "response.create"})
                assert (await event_of(beside, "response.done"))["type"] == "response.done"
                if code is not None:
                    error = (await event_of(call, "error"))["error"]
                    assert (error["code"], error["param"], error["event_id"]) == (
                        code,
                        "audio",
                        "e1",
                    )
            await call.send_json({"type": "input_audio_buffer.commit"})
            await event_of(call, "input_audio_buffer.committed")
            await call.send_json({"type": "response.create"})
            done = await event_of(call, "response.done")
            assert done["response"]["status"] == "completed"
        await gone(server)
