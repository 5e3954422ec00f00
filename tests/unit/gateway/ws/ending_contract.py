"""How a channel ends, whichever way it reads; over real sockets of this machine."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from duologue.gateway.ws.accept import Accept
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import (
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Frame,
    RawWebSocket,
    connected,
    masked,
)
from tests.unit.gateway.ws.wire import MAX_MESSAGE_BYTES, ChannelServer, serving

MUCH = b"m" * 1_000_000
"""More than the kernel takes for a peer that does not read."""


class EndingContract:
    """Subclasses say which channel."""

    accept: Accept

    @pytest.fixture
    async def server(self) -> AsyncIterator[ChannelServer]:
        async with serving(self.accept) as server:
            yield server

    async def test_a_peers_goodbye_is_answered_with_its_code(self, server: ChannelServer) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            peer.close(4321, "enough")
            assert await peer.frame() == Frame(CLOSE, (4321).to_bytes(2))
            assert await peer.end() == b""
            await (await server.line()).over()

    async def test_a_goodbye_without_a_code_is_answered_with_the_normal_one(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            peer.send(CLOSE)
            assert (await peer.goodbye()).code == 1000
            assert await peer.end() == b""

    async def test_our_goodbye_is_the_last_thing_said_and_the_peers_answer_ends_it(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            line = await server.line()
            line.channel.send(b"last")
            line.channel.close(1013, "too slow " * 30)
            line.channel.close(1000, "a second one is not written")
            assert not line.channel.can_send()
            assert not await line.channel.writable()
            assert await peer.frame() == Frame(TEXT, b"last")
            goodbye = await peer.frame()
            assert (goodbye.code, goodbye.reason) == (1013, ("too slow " * 30)[:123])
            peer.send(TEXT, b"too late")
            peer.send(PING)
            peer.close(1013)
            assert await peer.end() == b""
            await line.over()
            assert line.messages == []

    async def test_a_peer_that_does_not_answer_our_goodbye_is_cut_off(self) -> None:
        clock = FakeClock()
        async with serving(self.accept, clock=clock) as server, connected(server.port) as peer:
            await peer.upgrade()
            line = await server.line()
            line.channel.close(1000, "")
            assert (await peer.goodbye()).code == 1000
            clock.advance(4.9)
            peer.send(PING)
            await peer.writer.drain()
            assert not line.has_run.is_set()
            clock.advance(0.2)
            await peer.lost()
            await line.over()

    async def test_a_peer_that_does_not_read_is_cut_off_with_our_goodbye_unread(self) -> None:
        clock = FakeClock()
        async with (
            serving(self.accept, clock=clock) as server,
            connected(server.port, is_deaf=True) as peer,
        ):
            await peer.upgrade()
            line = await server.line()
            line.channel.send(MUCH)
            waiting = asyncio.create_task(line.channel.writable())
            await asyncio.sleep(0)
            line.channel.expire()
            clock.advance(5.1)
            assert await asyncio.wait_for(waiting, PATIENCE_S) is False
            await line.over()

    async def test_a_peer_that_is_not_read_is_cut_off_all_the_same(self) -> None:
        clock = FakeClock()
        async with serving(self.accept, clock=clock) as server, connected(server.port) as peer:
            await peer.upgrade()
            line = await server.line()
            line.on_message = lambda _message: line.channel.hold(True)
            peer.send(TEXT, b"the last that is read")
            await line.received(1)
            line.channel.expire()
            clock.advance(5.1)
            await line.over()

    async def test_a_peer_that_was_to_wait_may_answer_our_goodbye(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            line = await server.line()
            line.channel.hold(True)
            line.channel.close(1000, "")
            assert (await peer.goodbye()).code == 1000
            peer.close(1000)
            assert await peer.end() == b""
            await line.over()

    async def test_a_peer_that_says_goodbye_and_does_not_read_is_cut_off(self) -> None:
        clock = FakeClock()
        async with (
            serving(self.accept, clock=clock) as server,
            connected(server.port, is_deaf=True) as peer,
        ):
            await peer.upgrade()
            line = await server.line()
            line.channel.send(MUCH)
            peer.close()
            await line.over()
            clock.advance(5.1)
            peer.go_on_reading()
            assert await peer.lost() < len(MUCH)

    async def test_a_message_that_is_too_large_is_refused_with_the_limit(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            peer.send(TEXT, b"m" * MAX_MESSAGE_BYTES)
            line = await server.line()
            goodbye = await peer.goodbye()
            assert goodbye.code == 1009
            assert str(MAX_MESSAGE_BYTES) in goodbye.reason
            await line.ran()
            # The peer is still sending; that must not hide the reason from it.
            peer.write(masked(TEXT, b"more" * 100_000))
            await peer.writer.drain()
            peer.close(1009)
            assert await peer.end() == b""
            peer.finish()
            await line.over()
            assert line.messages == []

    async def test_a_message_that_grows_too_large_in_pieces_is_refused_too(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            peer.send(TEXT, b"m" * (MAX_MESSAGE_BYTES // 2), fin=False)
            peer.send(CONTINUATION, b"m" * (MAX_MESSAGE_BYTES // 2), fin=False)
            assert (await peer.goodbye()).code == 1009

    async def test_a_peer_that_breaks_the_protocol_is_told_so(self, server: ChannelServer) -> None:
        for nonsense in (
            masked(3, b"unknown opcode"),
            masked(TEXT, b"reserved bit", first_bits=0x20),
            masked(CONTINUATION, b"of nothing"),
            masked(PING, b"p" * 126),
            masked(CLOSE, b"\x03"),
        ):
            async with connected(server.port) as peer:
                await peer.upgrade()
                peer.write(nonsense)
                assert (await peer.goodbye()).code == 1002
                await (await server.line()).ran()
                server.forget()

    async def test_a_peer_that_broke_the_protocol_and_stays_is_cut_off(self) -> None:
        clock = FakeClock()
        async with serving(self.accept, clock=clock) as server, connected(server.port) as peer:
            await peer.upgrade()
            peer.write(masked(3, b""))
            assert (await peer.goodbye()).code == 1002
            line = await server.line()
            await line.ran()
            assert not line.is_over.is_set()
            clock.advance(5.1)
            await line.over()

    async def test_a_peer_that_vanishes_ends_it_without_a_word(self, server: ChannelServer) -> None:
        for vanish in (RawWebSocket.reset, RawWebSocket.finish):
            async with connected(server.port) as peer:
                await peer.upgrade()
                line = await server.line()
                with capture_logs() as logs:
                    vanish(peer)
                    await line.over()
                assert logs == []
                server.forget()

    async def test_a_peer_that_vanishes_wakes_who_waits_to_write(
        self, server: ChannelServer
    ) -> None:
        async with connected(server.port, is_deaf=True) as peer:
            await peer.upgrade()
            line = await server.line()
            line.channel.send(MUCH)
            waiting = asyncio.create_task(line.channel.writable())
            await asyncio.sleep(0)
            peer.reset()
            assert await asyncio.wait_for(waiting, PATIENCE_S) is False

    async def test_a_cancelled_reader_says_that_it_goes_away(self, server: ChannelServer) -> None:
        async with connected(server.port) as peer:
            await peer.upgrade()
            (await server.line()).task.cancel()
            assert (await peer.goodbye()).code == 1001
            assert await peer.end() == b""

    # Signs of life

    async def test_a_silent_peer_is_asked_and_stays_while_it_answers(self) -> None:
        # aiohttp gives a peer half of it to answer, which a busy machine may take up.
        async with serving(self.accept, heartbeat_s=1.0) as server, connected(server.port) as peer:
            await peer.upgrade()
            for _ in range(2):
                ping = await peer.frame()
                assert ping.opcode == PING
                peer.send(PONG, ping.payload)
            peer.send(TEXT, b"here")
            line = await server.line()
            assert await line.received(1) == [b"here"]

    async def test_a_dead_peer_is_given_up(self) -> None:
        async with serving(self.accept, heartbeat_s=0.1) as server, connected(server.port) as peer:
            await peer.upgrade()
            assert (await peer.frame()).opcode == PING
            await (await server.line()).over()
            await peer.lost()

    async def test_a_dead_peer_is_given_up_though_output_waits_for_it(self) -> None:
        async with (
            serving(self.accept, heartbeat_s=0.1) as server,
            connected(server.port, is_deaf=True) as peer,
        ):
            await peer.upgrade()
            line = await server.line()
            line.channel.send(MUCH)
            assert await asyncio.wait_for(line.channel.writable(), PATIENCE_S) is False
            await line.over()

    async def test_a_long_message_on_a_slow_line_is_a_sign_of_life(self) -> None:
        loop = asyncio.get_running_loop()
        async with serving(self.accept, heartbeat_s=0.5) as server, connected(server.port) as peer:
            await peer.upgrade()
            line = await server.line()
            started = loop.time()
            for byte in masked(TEXT, b"m" * 30):
                peer.write(bytes([byte]))
                await asyncio.wait((line.task,), timeout=0.05)
            assert loop.time() - started > 1.5
            assert await line.received(1) == [b"m" * 30]

    # Leftovers

    async def test_nothing_is_left_of_a_connection_that_has_ended(
        self, server: ChannelServer
    ) -> None:
        gone = []
        gc.collect()
        gc.disable()
        try:
            for how in ("close", "finish", "reset"):
                async with connected(server.port) as peer:
                    await peer.upgrade()
                    peer.send(TEXT, b"hello")
                    line = await server.line()
                    await line.received(1)
                    getattr(peer, how)()
                    await line.over()
                    gone.append(weakref.ref(line.channel))
                    server.forget()
                    del line
            for _ in range(10):
                await asyncio.sleep(0)
            assert [ref() for ref in gone] == [None, None, None]
            assert len(server.timing.wheel) == 0
        finally:
            gc.enable()
