from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosedError, InvalidURI
from websockets.frames import Close
from websockets.http11 import Response

from duologue.app import App
from duologue.clients.errors import (
    CallEnded,
    ConnectionLost,
    NotRealtimeServer,
    ServerUnreachable,
)
from duologue.clients.transports.websocket import (
    WebSocketTransport,
    close_error,
    connect_error,
    status_error,
)
from duologue.core.errors import AuthError, CapacityError, ConfigError, ProtocolError
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.client_dialects import CLIENT_DIALECTS, ClientFamily
from duologue.protocol.commands import ClearAudio, UpdateSession
from duologue.protocol.dialect import Encoding
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.events import AudioCleared, ResumableSessionCreated, SessionCreated
from duologue.protocol.json_codec import UnknownEvent
from tests.fakes.small_gateway import API_KEY

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def address(app: App) -> str:
    return app.url.replace("http", "ws") + "/v1/realtime"


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[str]:
    """Something that listens and is no gateway."""
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"ws://{host}:{port}/v1/realtime"


async def test_commands_and_events_cross_the_socket(gateway: App) -> None:
    transport = await WebSocketTransport.open(address(gateway))
    greeting = await transport.receive()
    assert isinstance(greeting.event, SessionCreated)
    assert greeting.seq == 1
    await transport.send(AppendAudio(audio=bytes(960)))
    await transport.send(ClearAudio())
    assert isinstance((await transport.receive()).event, AudioCleared)
    await transport.close()
    with pytest.raises(CallEnded) as ended:
        await transport.receive()
    assert ended.value.is_normal
    with pytest.raises(CallEnded):
        await transport.send(ClearAudio())


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
async def test_the_server_chooses_the_encoding(gateway: App, encoding: Encoding) -> None:
    transport = await WebSocketTransport.open(address(gateway), encodings=(encoding,))
    assert transport.dialect is CLIENT_DIALECTS["realtime", encoding]
    assert isinstance((await transport.receive()).event, SessionCreated)
    await transport.send(ClearAudio())
    assert isinstance((await transport.receive()).event, AudioCleared)
    await transport.close()


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
async def test_a_duplex_session_begins_with_its_description(
    gateway: App, encoding: Encoding
) -> None:
    family: ClientFamily = "duplex"
    url = f"{address(gateway)}?duplex=1&autostart=0"
    transport = await WebSocketTransport.open(url, family=family, encodings=(encoding,))
    assert transport.dialect is CLIENT_DIALECTS["duplex", encoding]
    await transport.send(UpdateSession(session=DuplexPatch(auto_response=False)))
    greeting = await transport.receive()
    assert isinstance(greeting.event, ResumableSessionCreated)
    assert greeting.event.resume_token
    session = greeting.event.session
    assert isinstance(session, DuplexSessionResource)
    assert session.extra_body.auto_response is False
    assert greeting.seq == 1
    await transport.close()


async def test_a_wrong_key_is_told_from_a_full_server(full_gateway: App) -> None:
    url = address(full_gateway)
    with pytest.raises(AuthError, match="an API key is required"):
        await WebSocketTransport.open(url)
    with pytest.raises(AuthError, match="not valid"):
        await WebSocketTransport.open(url, api_key="guess")
    only = await WebSocketTransport.open(url, api_key=API_KEY)
    with pytest.raises(CapacityError, match=r"full.* \(wait 5 s") as full:
        await WebSocketTransport.open(url, api_key=API_KEY)
    assert full.value.retry_after_s == 5.0
    await only.close()


async def test_another_page_of_the_server_is_no_endpoint(gateway: App) -> None:
    with pytest.raises(NotRealtimeServer, match="no such page"):
        await WebSocketTransport.open(address(gateway) + "x")
    with pytest.raises(NotRealtimeServer, match="HTTP 200"):
        await WebSocketTransport.open(gateway.url.replace("http", "ws") + "/health")


async def test_nobody_there_says_how_to_start_a_server(unused_tcp_port: int) -> None:
    with pytest.raises(ServerUnreachable, match="duologue serve"):
        await WebSocketTransport.open(f"ws://127.0.0.1:{unused_tcp_port}/v1/realtime")


def test_a_certificate_that_is_not_trusted_is_no_absent_server() -> None:
    untrusted = ssl.SSLCertVerificationError(1, "verify failed")
    untrusted.verify_message = "self-signed certificate"
    error = connect_error(untrusted, "wss://x/v1", 1.0)
    assert isinstance(error, ServerUnreachable)
    assert "is not trusted here (self-signed certificate)" in error.message
    assert "SSL_CERT_FILE" in error.message


async def test_what_speaks_no_http_is_no_realtime_server() -> None:
    async def mutter(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        writer.close()

    async with listening(mutter) as url:
        with pytest.raises(NotRealtimeServer, match="right port"):
            await WebSocketTransport.open(url)


async def test_silence_is_waited_for_so_long_and_no_longer() -> None:
    done = asyncio.Event()

    async def brood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await done.wait()
        writer.close()

    async with listening(brood) as url:
        with pytest.raises(ServerUnreachable, match=r"did not answer within 0.05 s"):
            await WebSocketTransport.open(url, open_timeout_s=0.05)
        done.set()


@pytest.mark.parametrize(
    ("received", "sent", "kind", "code"),
    [
        (None, None, ConnectionLost, None),
        (Close(1006, ""), None, ConnectionLost, None),
        (None, Close(1011, "keepalive ping timeout"), ConnectionLost, None),
        (None, Close(1000, ""), CallEnded, 1000),
        (Close(1000, ""), Close(1000, ""), CallEnded, 1000),
        (Close(1013, "Too slow."), Close(1013, ""), CallEnded, 1013),
    ],
)
def test_how_a_socket_closed_says_what_happened(
    received: Close | None, sent: Close | None, kind: type, code: int | None
) -> None:
    in_order = (received is not None) if received and sent else None
    error = close_error(ConnectionClosedError(received, sent, in_order))
    assert type(error) is kind
    assert getattr(error, "close_code", None) == code


def test_a_close_with_a_reason_repeats_it() -> None:
    error = close_error(ConnectionClosedError(Close(1013, "Too slow."), None))
    assert error.message == "the server ended the call (1013): Too slow."


def test_a_page_that_is_no_error_of_ours_is_not_quoted() -> None:
    error = status_error(response(503, b"<html>secret</html>", {"Retry-After": "soon"}), "ws://h")
    assert isinstance(error, CapacityError)
    assert error.retry_after_s == 5.0
    assert "secret" not in error.message


def test_rate_limits_are_a_matter_of_time() -> None:
    error = status_error(response(429, b"", {"Retry-After": "30"}), "ws://h")
    assert isinstance(error, CapacityError)
    assert error.retry_after_s == 30.0


@pytest.mark.parametrize("given", ["\u00b2", "-1", "9" * 400])
def test_a_wait_that_is_none_leaves_the_usual_one(given: str) -> None:
    error = status_error(response(429, b"", {"Retry-After": given}), "ws://h")
    assert isinstance(error, CapacityError)
    assert error.retry_after_s == 5.0


def test_a_broken_server_is_quoted_in_its_own_words() -> None:
    body = b'{"error": {"message": "disk full"}}'
    error = status_error(response(500, body, {}), "ws://h")
    assert isinstance(error, NotRealtimeServer)
    assert "HTTP 500" in error.message
    assert error.message.endswith("disk full")


def test_a_url_that_is_none_is_a_mistake_of_the_caller() -> None:
    assert isinstance(connect_error(InvalidURI("x", "y"), "x", 1.0), ConfigError)


async def test_messages_are_read_as_they_are() -> None:
    class Socket:
        def __init__(self, *messages: bytes) -> None:
            self.messages = list(messages)

        async def recv(self, decode: bool) -> bytes:
            assert decode is False
            return self.messages.pop(0)

    socket = Socket(b'{"type":"brand.new","event_id":"other"}', b"[1]")
    dialect = CLIENT_DIALECTS["realtime", "json"]
    transport = WebSocketTransport(socket, dialect)  # type: ignore[arg-type]
    received = await transport.receive()
    assert isinstance(received.event, UnknownEvent)
    assert received.seq is None
    with pytest.raises(ProtocolError):
        await transport.receive()


def response(status: int, body: bytes, headers: dict[str, str]) -> Response:
    return Response(status, "", Headers(headers), body)
