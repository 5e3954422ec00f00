from __future__ import annotations

import asyncio

import pytest

from duologue.duplex_plugins.echo import EchoPlugin
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import SessionSettings
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import (
    CLOSE,
    TEXT,
    UPGRADE,
    Response,
    connected,
    masked,
    request,
)
from tests.unit.gateway.small_server import small_server

PATH = "/v1/realtime"


async def test_a_connection_is_a_session_from_its_beginning_to_its_end() -> None:
    async with small_server() as server:
        async with connected(server.port) as peer:
            await peer.upgrade(f"{PATH}?model=other")
            created = await peer.event()
            assert created["type"] == "session.created"
            assert created["session"]["model"] == "other"
            assert len(server.sessions) == 1
            peer.close()
            assert (await peer.goodbye()).code == 1000
            await peer.end()
        await server.realtime.wait_closed(PATIENCE_S)
        assert len(server.sessions) == 0
        assert len(server.wheel) == 0


@pytest.mark.parametrize(
    ("query", "model"),
    [
        ("", "echo"),
        ("?model=other", "other"),
        ("?model=gpt-realtime", "gpt-realtime"),
        ("?duplex=1?model=other", "other"),
    ],
)
async def test_any_name_of_a_model_opens_a_call(query: str, model: str) -> None:
    async with small_server(pipelines=("asr",)) as server, connected(server.port) as peer:
        await peer.upgrade(PATH + query)
        assert (await peer.event())["session"]["model"] == model


async def test_a_call_for_transcripts_shows_no_model_of_its_own() -> None:
    async with small_server(pipelines=("asr",)) as server, connected(server.port) as peer:
        await peer.upgrade(f"{PATH}?intent=transcription&model=other")
        session = (await peer.event())["session"]
        assert session["type"] == "transcription"
        assert "model" not in session


async def test_a_session_that_nobody_could_transcribe_is_refused_before_the_upgrade() -> None:
    async with small_server() as server, connected(server.port) as peer:
        answer = await peer.ask(f"{PATH}?intent=transcription", UPGRADE)
        assert (answer.status, answer.json["error"]["code"]) == (501, "no_recogniser")
        assert len(server.sessions) == 0


async def test_commands_right_behind_the_request_are_answered_in_order() -> None:
    update = b'{"type":"session.update","session":{"type":"realtime","instructions":"Hi."}}'
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade(PATH, behind=masked(TEXT, update))
        events = await peer.until("session.updated")
        assert [event["type"] for event in events] == ["session.created", "session.updated"]
        assert events[1]["session"]["instructions"] == "Hi."


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "invalid_api_key"),
        (UPGRADE, 401, "invalid_api_key"),
        (UPGRADE | {"Authorization": "Bearer wrong"}, 401, "invalid_api_key"),
        (UPGRADE | {"Sec-WebSocket-Protocol": "realtime"}, 401, "invalid_api_key"),
        (UPGRADE | {"api-key": "sesame", "Origin": "https://e.example"}, 403, "origin_not_allowed"),
        ({"api-key": "sesame"}, 400, "invalid_request"),
        (UPGRADE | {"api-key": "sesame", "Sec-WebSocket-Version": "8"}, 400, "invalid_request"),
    ],
)
async def test_who_may_not_connect_learns_why_before_the_upgrade(
    headers: dict[str, str], status: int, code: str
) -> None:
    settings = GatewaySettings(api_keys=("sesame",))
    async with small_server(settings) as server, connected(server.port) as peer:
        answer = await peer.ask(PATH, headers)
        assert (answer.status, answer.json["error"]["code"]) == (status, code)
        assert ("WWW-Authenticate" in answer.headers) == (status == 401)
        assert len(server.sessions) == 0


@pytest.mark.parametrize("protocols", ["realtime, openai-insecure-api-key.sesame", None])
async def test_a_key_opens_and_shows_nowhere(
    protocols: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    settings = GatewaySettings(api_keys=("sesame",))
    headers = {"Authorization": "Bearer sesame"}
    if protocols is not None:
        headers = {"Sec_WebSocket_Protocol": protocols}
    async with small_server(settings) as server, connected(server.port) as peer:
        await peer.upgrade(PATH, **headers)
        assert (await peer.event())["type"] == "session.created"
        assert "sesame" not in str(peer.response.headers) + caplog.text
        selected = peer.response.headers.get("Sec-WebSocket-Protocol")
        assert selected == (None if protocols is None else "realtime")


async def test_a_server_that_loads_takes_no_call_yet() -> None:
    async with small_server(is_loaded=False) as server, connected(server.port) as peer:
        answer = await peer.ask(PATH, UPGRADE)
        assert (answer.status, answer.json["error"]["code"]) == (503, "server_not_ready")
        assert int(answer.headers["Retry-After"]) > 0


async def test_one_call_too_many_is_refused_before_the_upgrade_and_room_comes_back() -> None:
    async with (
        small_server(sessions=SessionSettings(max_sessions=1)) as server,
        connected(server.port) as first,
        connected(server.port) as second,
    ):
        await first.upgrade(PATH)
        answer = await second.ask(PATH, UPGRADE)
        assert (answer.status, answer.json["error"]["code"]) == (503, "server_full")
        assert int(answer.headers["Retry-After"]) > 0
        first.close()
        await first.goodbye()
        await server.realtime.wait_closed(PATIENCE_S)
        await second.upgrade(PATH)


async def test_two_that_come_at_once_do_not_share_the_last_place() -> None:
    async with (
        small_server(sessions=SessionSettings(max_sessions=1)) as server,
        connected(server.port) as first,
        connected(server.port) as second,
    ):
        both = await asyncio.gather(first.ask(PATH, UPGRADE), second.ask(PATH, UPGRADE))
        assert sorted(answer.status for answer in both) == [101, 503]


async def test_a_client_that_leaves_during_the_handshake_leaves_no_session_behind() -> None:
    async with small_server() as server:
        for _ in range(20):
            async with connected(server.port) as peer:
                peer.write(request(PATH, {"Host": "h", **UPGRADE}))
                await peer.writer.drain()
                peer.reset()
        async with connected(server.port) as peer:
            await peer.ask("/health")
        await server.realtime.wait_closed(PATIENCE_S)
        assert len(server.sessions) == 0


@pytest.mark.parametrize("private", [True, False])
async def test_a_server_that_goes_down_says_so_and_waits_for_the_answer(private: bool) -> None:
    settings = GatewaySettings(private_reader=private)
    async with small_server(settings) as server, connected(server.port) as peer:
        await peer.upgrade(PATH)
        await peer.event()
        server.sessions.close_all("server_shutting_down")
        closing = asyncio.create_task(server.realtime.wait_closed(PATIENCE_S))
        goodbye = await peer.goodbye()
        assert (goodbye.code, goodbye.reason) == (1001, "The server is shutting down.")
        await asyncio.sleep(0)
        assert not closing.done()
        peer.close(1001)
        assert await peer.end() == b""
        await closing


async def test_a_client_that_does_not_let_go_is_not_waited_for() -> None:
    settings = GatewaySettings(close_timeout_s=0.1)
    async with small_server(settings) as server, connected(server.port) as peer:
        await peer.upgrade(PATH)
        await peer.event()
        server.sessions.close_all("server_shutting_down")
        await server.realtime.wait_closed(PATIENCE_S)
        assert len(server.wheel) == 0


class BrokenPlugin(EchoPlugin):
    def step(self, state, item):
        raise ValueError("what was said")


async def test_a_plugin_that_fails_ends_its_session_with_a_reason() -> None:
    append = b'{"type":"input_audio_buffer.append","audio":"AAAA"}'
    async with (
        small_server(plugins={"broken": BrokenPlugin()}) as server,
        connected(server.port) as peer,
    ):
        await peer.upgrade(PATH)
        peer.send(TEXT, append)
        goodbye = await peer.goodbye()
        assert goodbye.code == 1011
        assert "said" not in goodbye.reason
        assert len(server.sessions) == 0


async def test_connections_that_do_not_end_are_reported() -> None:
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade(PATH)
        await server.realtime.wait_closed(0.01)
        assert len(server.sessions) == 1
        peer.send(CLOSE)
        assert (await peer.goodbye()).code == 1000


KITCHEN = {"name": "kitchen", "key": "open sesame", "max_sessions": 1, "requests_per_minute": 3}
AS_KITCHEN = UPGRADE | {"api-key": "open sesame"}


async def test_a_key_holds_no_more_calls_than_it_may_and_others_are_not_hindered() -> None:
    settings = GatewaySettings(api_keys=("mellon",), named_keys=(KITCHEN,))
    async with (
        small_server(settings) as server,
        connected(server.port) as first,
        connected(server.port) as second,
        connected(server.port) as other,
    ):
        await first.upgrade(PATH, Authorization="Bearer open sesame")
        answer = await second.ask(PATH, AS_KITCHEN)
        assert (answer.status, answer.json["error"]["code"]) == (429, "too_many_sessions")
        assert answer.json["error"]["type"] == "rate_limit_error"
        assert int(answer.headers["Retry-After"]) > 0
        await other.upgrade(PATH, api_key="mellon")
        assert server.metrics.key_sessions["kitchen"].value == 1
        for peer in (first, other):
            peer.close()
            await peer.goodbye()
        await server.realtime.wait_closed(PATIENCE_S)
        assert server.metrics.key_sessions["kitchen"].value == 0
        await second.upgrade(PATH, Authorization="Bearer open sesame")
        answer = await first_request(server.port)
        assert (answer.status, answer.json["error"]["code"]) == (429, "rate_limited")
        assert 1 <= int(answer.headers["Retry-After"]) <= 20


async def first_request(port: int) -> Response:
    async with connected(port) as peer:
        return await peer.ask(PATH, AS_KITCHEN)
