from __future__ import annotations

import logging

import pytest
from aiohttp import web
from aiohttp.multipart import parse_content_disposition

from duologue.gateway.http.faults import OurFaults, server_logger
from tests.unit.gateway.raw_websocket import connected
from tests.unit.gateway.small_server import small_server


@pytest.mark.parametrize(
    "noise",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"EHLO example\r\n\r\n",
        b"GET / HTTP/1.1\r\nAuthorization: Bearer sesame\x01\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
    ],
)
async def test_a_peer_that_speaks_no_http_is_refused_and_not_logged(
    noise: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_server() as server, connected(server.port) as peer:
        peer.write(noise)
        assert (await peer.end()).startswith(b"HTTP/1.")
        assert [each for each in caplog.records if each.name != "asyncio"] == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/images/edits", "/nothing"])
async def test_a_body_that_cannot_be_unpacked_is_not_logged(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: here\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n"
    async with small_server() as server, connected(server.port) as peer:
        peer.write(f"{head}\r\nhello".encode())
        assert (await peer.end()).startswith(b"HTTP/1.1 4")
    assert [each for each in caplog.records if each.name != "asyncio"] == []


async def test_a_fault_of_ours_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def crash(_request: web.Request) -> web.Response:
        raise ValueError("ours")

    app = web.Application()
    app.router.add_get("/", crash)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, logger=server_logger())
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with connected(runner.addresses[0][1]) as peer:
            assert (await peer.ask("/")).status == 500
    finally:
        await runner.cleanup()
    (record,) = [each for each in caplog.records if each.name != "asyncio"]
    assert record.levelno == logging.ERROR


def test_the_logger_filters_once_however_many_servers_there_are() -> None:
    assert server_logger() is server_logger()
    assert len([each for each in server_logger().filters if isinstance(each, OurFaults)]) == 1


def test_a_peers_malformed_header_is_no_warning_of_ours() -> None:
    server_logger()
    # An error here, unless it is silenced.
    assert parse_content_disposition('form-data; n\udcb8e="a"') == ("form-data", {})
