"""C51 over TLS: lines that break in the handshake, after it, and in the midst of a call."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from duologue.app import running_app
from duologue.artifacts.settings import ArtifactSettings
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings, TlsSettings
from duologue.sessions.settings import SessionSettings
from tests.faults.gateway_line import SHORT, Server, line_settings, take_turn
from tests.faults.phases import CUTS, PHASES, Cut
from tests.unit.gateway.raw_websocket import RawWebSocket, connected

HELLO_BYTES = 100
"""Of a greeting that is longer."""


@pytest.fixture(autouse=True)
async def no_remarks_on_handshakes() -> AsyncIterator[None]:
    """A loop in debug mode tells of every handshake that comes to nothing, which is no fault."""
    loop = asyncio.get_running_loop()
    tell = loop.get_exception_handler()

    def tell_the_rest(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "transport creation for incoming" not in context["message"]:
            assert tell is not None
            tell(loop, context)

    loop.set_exception_handler(tell_the_rest)
    yield
    loop.set_exception_handler(tell)


@asynccontextmanager
async def secure(folder: Path) -> AsyncIterator[tuple[Server, ssl.SSLContext]]:
    """A server with one place that speaks TLS, and who trusts it."""
    gateway = GatewaySettings(
        tls=TlsSettings(dev=True, handshake_timeout_s=1.0),
        heartbeat_s=1.0,
        http=HttpSettings(first_request_timeout_s=1.0),
    )
    settings = line_settings(gateway, SessionSettings(max_sessions=1))
    settings = settings.model_copy(update={"artifacts": ArtifactSettings(cache_dir=folder)})
    async with running_app(settings) as app:
        assert app.tls is not None
        trust = ssl.create_default_context(cafile=str(app.tls.certificate.path))
        yield Server(app), trust


async def takes_a_call(server: Server, trust: ssl.SSLContext) -> None:
    async with connected(server.port, tls=trust) as line:
        await line.upgrade(f"/v1/realtime?model={SHORT}")
        line.send_event(
            {
                "type": "session.update",
                "session": {"type": "realtime", "audio": {"input": {"turn_detection": None}}},
            }
        )
        await line.until("session.updated")
        await take_turn(line)


async def greet_half(line: RawWebSocket, trust: ssl.SSLContext) -> None:
    """Begin a handshake, on a connection without TLS."""
    written = ssl.MemoryBIO()
    hello = trust.wrap_bio(ssl.MemoryBIO(), written, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    line.write(written.read()[:HELLO_BYTES])
    await line.writer.drain()


@pytest.mark.parametrize("cut", CUTS, ids=["reset", "finish"])
async def test_c51_a_line_with_tls_that_breaks_at_any_moment_leaves_nothing_behind(
    cut: Cut, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with secure(tmp_path) as (server, trust):
        async with connected(server.port) as line:
            await greet_half(line, trust)
            cut(line)
            await line.lost()
        async with connected(server.port, tls=trust) as line:
            cut(line)
            await line.lost()
        for phase in PHASES:
            async with connected(server.port, tls=trust) as line:
                await phase(line)
                await line.writer.drain()
                cut(line)
                await line.lost()
            await server.is_clean()
        await takes_a_call(server, trust)
    errors = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert errors == [], "a handler crashed"


async def test_c51_a_black_hole_right_after_the_handshake_is_let_go(tmp_path: Path) -> None:
    async with secure(tmp_path) as (server, trust), connected(server.port, tls=trust) as line:
        # It says nothing at all; the server waits no longer than for a first request.
        assert await line.lost() == 0
        await takes_a_call(server, trust)


@pytest.mark.timeout(90)
async def test_c51_a_black_hole_within_the_handshake_is_let_go_and_counted(tmp_path: Path) -> None:
    async with secure(tmp_path) as (server, trust), connected(server.port) as line:
        counts = server.app.metrics.tls_handshakes
        await greet_half(line, trust)
        assert await line.lost() == 0
        assert (counts["begun"].value, counts["done"].value, counts["refused"].value) == (1, 0, 0)
        await takes_a_call(server, trust)
        assert (counts["begun"].value, counts["done"].value) == (2, 1)
