"""How messages cross a channel, whichever way it reads; over real sockets of this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from duologue.gateway.ws.accept import Accept
from duologue.gateway.ws.channel import (
    HIGH_WATER_BYTES,
    MAX_WAITING_PONG_BYTES,
    NOT_SENT_LOW_WATER_BYTES,
)
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import (
    ACCEPT,
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Frame,
    connected,
    masked,
)
from tests.unit.gateway.ws.wire import MAX_MESSAGE_BYTES, ChannelServer, serving


class MessageContract:
    """Subclasses say which channel."""

    accept: Accept

    @pytest.fixture
    async def server(self) -> AsyncIterator[ChannelServer]:
        async with serving(self.accept) as server:
            yield server

    # The handshake

    async def test_the_handshake_is_answered_as_the_standard_says(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            assert peer.response.headers["Sec-WebSocket-Accept"] == ACCEPT
            assert "Sec-WebSocket-Protocol" not in peer.response.headers

    async def test_compression_is_never_taken_up(self, server: ChannelServer) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade(
                Sec_WebSocket_Extensions="permessage-deflate; client_max_window_bits"
            )
            assert "Sec-WebSocket-Extensions" not in peer.response.headers
            peer.send(TEXT, b"x", first_bits=0x40)
            assert (await peer.goodbye()).code == 1002

    async def test_only_the_protocol_without_a_secret_is_selected(
        self, server: ChannelServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        offer = "openai-insecure-api-key.sesame,realtime, openai-agents-sdk.0.20.0"
        async with connected(server.port) as peer:
            await peer.upgrade(Sec_WebSocket_Protocol=offer)
            assert peer.response.headers["Sec-WebSocket-Protocol"] == "realtime"
            assert "sesame" not in str(peer.response.headers) + caplog.text

    async def test_an_offer_of_secrets_alone_is_neither_selected_nor_logged(
        self, server: ChannelServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade(Sec_WebSocket_Protocol="openai-insecure-api-key.sesame")
            assert "Sec-WebSocket-Protocol" not in peer.response.headers
            assert "sesame" not in caplog.text

    async def test_what_is_sent_right_behind_the_request_is_not_lost(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port) as peer:
            first, second = masked(TEXT, b"first"), masked(TEXT, b"second")
            await peer.upgrade(behind=first + second[:4])
            peer.write(second[4:])
            line = await server.line()
            assert await line.received(2) == [b"first", b"second"]

    async def test_a_goodbye_right_behind_the_request_is_answered(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade(behind=masked(CLOSE, b"\x03\xe8"))
            assert (await peer.goodbye()).code == 1000
            assert await peer.end() == b""

    # Messages in

    async def test_messages_arrive_whole_and_in_order(self, server: ChannelServer) -> None:
        sizes = (0, 1, 125, 126, 65535, 65536, MAX_MESSAGE_BYTES - 1)
        messages = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
        async with connected(server.port) as peer:
            await peer.upgrade()
            for number, message in enumerate(messages):
                peer.send((TEXT, BINARY)[number % 2], message)
            line = await server.line()
            assert await line.received(len(messages)) == messages

    async def test_a_message_in_pieces_arrives_once_and_a_ping_may_come_between(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            peer.send(TEXT, b"in ", fin=False)
            peer.send(PING, b"still there?")
            peer.send(CONTINUATION, b"three ", fin=False)
            peer.send(CONTINUATION, b"pieces")
            line = await server.line()
            assert await line.received(1) == [b"in three pieces"]
            assert await peer.frame() == Frame(PONG, b"still there?")

    async def test_messages_go_out_in_frames_of_their_kind(self, server: ChannelServer) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            line = await server.line()
            line.channel.send(b"text")
            line.channel.send_binary(b"\xff")
            assert await peer.frame() == Frame(TEXT, b"text")
            assert await peer.frame() == Frame(BINARY, b"\xff")

    async def test_bytes_arrive_one_at_a_time(self, server: ChannelServer) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            for byte in masked(TEXT, b"slowly"):
                peer.write(bytes([byte]))
                await asyncio.sleep(0)
            line = await server.line()
            assert await line.received(1) == [b"slowly"]

    async def test_a_ping_is_answered_and_a_pong_is_not(self, server: ChannelServer) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            peer.send(PONG, b"unasked")
            peer.send(PING, b"p" * 125)
            peer.send(TEXT, b"on")
            assert await peer.frame() == Frame(PONG, b"p" * 125)
            line = await server.line()
            assert await line.received(1) == [b"on"]

    async def test_a_peer_that_is_told_to_wait_is_read_again_when_it_may_go_on(
        self, server: ChannelServer
    ) -> None:
        count, size = 2000, 4000

        def hold_at_the_tenth(message: bytes) -> None:
            if len(line.messages) == 10:
                line.channel.hold(True)

        async with connected(server.port) as peer:
            await peer.upgrade()
            line = await server.line()
            line.on_message = hold_at_the_tenth
            for _ in range(count):
                peer.send(BINARY, b"m" * size)
            everything = asyncio.create_task(line.received(count))
            await asyncio.wait((everything,), timeout=0.2)
            # Not more than a piece or two that had been read from the kernel already.
            assert len(line.messages) * size < 1024 * 1024
            line.channel.hold(False)
            assert len(await everything) == count

    async def test_a_reader_that_raises_ends_the_connection_and_leaves_a_line_in_the_log(
        self, server: ChannelServer
    ) -> None:
        def crash(message: bytes) -> None:
            raise ValueError("what was said")

        async with connected(server.port) as peer:
            await peer.upgrade()
            line = await server.line()
            line.on_message = crash
            with capture_logs() as logs:
                peer.send(TEXT, b"boom")
                assert (await peer.goodbye()).code == 1011
                await line.ran()
            (entry,) = logs
            assert entry["event"] == "message_handler_crashed"
            peer.send(TEXT, b"after")
            peer.finish()
            await line.over()
            assert line.messages == [b"boom"]

    # Messages out

    async def test_a_message_of_any_size_goes_out_as_one_frame(self, server: ChannelServer) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            line = await server.line()
            for size in (0, 125, 126, 65535, 65536, 1_000_000):
                line.channel.send(b"m" * size)
                assert await peer.frame() == Frame(TEXT, b"m" * size)

    async def test_little_lies_in_the_transport_of_a_peer_that_reads_nothing(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port, is_deaf=True) as peer:
            await peer.upgrade()
            channel = (await server.line()).channel

            async def write_on() -> None:
                while await channel.writable():
                    channel.send(b"m" * 1000)

            writer = asyncio.create_task(write_on())
            await asyncio.wait((writer,), timeout=0.2)
            held = channel._transport.get_write_buffer_size()
            assert HIGH_WATER_BYTES <= held < HIGH_WATER_BYTES + 1004
            assert not channel.can_send()
            peer.reset()
            await asyncio.wait_for(writer, PATIENCE_S)

    async def test_everything_arrives_in_order_once_a_slow_reader_goes_on(
        self, server: ChannelServer
    ) -> None:
        count = 300

        async def write() -> None:
            for number in range(count):
                assert await line.channel.writable()
                line.channel.send(f"{number:05}".encode() * 200)

        async with connected(server.port, is_deaf=True) as peer:
            await peer.upgrade()
            line = await server.line()
            async with asyncio.TaskGroup() as group:
                group.create_task(write())
                await asyncio.sleep(0)
                peer.go_on_reading()
                for number in range(count):
                    assert (await peer.frame()).payload[:5] == f"{number:05}".encode()

    async def test_bytes_that_the_kernel_has_not_sent_are_bounded_too(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            channel = (await server.line()).channel
            sock = channel._transport.get_extra_info("socket")
            limit = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT)
            assert limit == NOT_SENT_LOW_WATER_BYTES
            assert channel._transport.get_write_buffer_limits()[1] == HIGH_WATER_BYTES - 1

    async def test_pings_of_a_peer_that_reads_nothing_do_not_fill_the_memory(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port, is_deaf=True) as peer:
            await peer.upgrade()
            line = await server.line()
            for _ in range(8):
                peer.write(masked(PING, b"p" * 125) * 1000)
                await peer.writer.drain()
            peer.send(TEXT, b"done")
            await line.received(1)
            assert line.channel._transport.get_write_buffer_size() <= MAX_WAITING_PONG_BYTES + 127
