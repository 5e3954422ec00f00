"""Links on real sockets, between a host's end and an edge's."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from duologue.core.errors import DuologueError, LimitExceeded, ProtocolError
from duologue.core.wheel import TimerWheel
from duologue.engines.framing import MAX_FRAME_BYTES
from duologue.engines.payloads import AudioChunk
from duologue.hosts import link as link_module
from duologue.hosts.answer_questions import AskKeepAnswer, KnownAnswer
from duologue.hosts.engine_messages import InputAppended
from duologue.hosts.handshake import EdgeHandshake, HostHandshake
from duologue.hosts.link import BEAT_S, HIGH_WATER_BYTES, SILENCE_S, Link
from duologue.hosts.link_end import LinkEnd
from duologue.hosts.messages import Beat, Hello
from duologue.hosts.outbox import Outbox
from duologue.hosts.port import Opening
from duologue.hosts.questions import AskLook, Done
from duologue.hosts.settings import LinkSettings
from duologue.hosts.write_pace import WritePace
from duologue.protocol.append_audio import AppendAudio
from tests.fakes.clock import FakeClock
from tests.fakes.link import FakeClient, FakeServer, sound, until

LIMITS = LinkSettings()


class Pair:
    """Both ends."""

    def __init__(
        self,
        group: asyncio.TaskGroup,
        secret: bytes,
        pace: Callable[[], WritePace] = WritePace,
    ) -> None:
        self._pace = pace
        self.clock = FakeClock(100.0)
        self.wheel = TimerWheel(self.clock.call_at)
        self.servers = {"host": FakeServer(), "edge": FakeServer()}
        self.gone: dict[str, str] = {}
        self.joined = {"host": asyncio.Event(), "edge": asyncio.Event()}
        self.left = {"host": asyncio.Event(), "edge": asyncio.Event()}
        random = secrets.token_bytes
        self.links = {
            "host": self._link("host", HostHandshake("h", "1", b"s" * 16, random), group),
            "edge": self._link("edge", EdgeHandshake("e", "1", secret, random), group),
        }

    def _link(self, side: str, handshake: Any, group: asyncio.TaskGroup) -> Link:
        def made(_link: Link, outbox: Outbox) -> LinkEnd:
            self.joined[side].set()
            return LinkEnd(self.servers[side], outbox, LIMITS, group)

        def gone(_link: Link, why: str) -> None:
            self.gone[side] = why
            self.left[side].set()

        return Link(handshake, made, gone, self.clock, self.wheel, pace=self._pace())

    def end(self, side: str) -> LinkEnd:
        end = self.links[side].end
        assert end is not None
        return end


@asynccontextmanager
async def pair(
    secret: bytes = b"s" * 16, *, joined: bool = True, pace: Callable[[], WritePace] = WritePace
) -> AsyncIterator[Pair]:
    loop = asyncio.get_running_loop()
    left, right = socket.socketpair()
    async with asyncio.TaskGroup() as group:
        made = Pair(group, secret, pace)
        for side, sock in (("host", left), ("edge", right)):
            await loop.create_connection(lambda side=side: made.links[side], sock=sock)  # type: ignore[misc]
        if joined:
            for event in made.joined.values():
                await event.wait()
        yield made
        for side in ("host", "edge"):
            made.links[side].close("over")
            await made.left[side].wait()


async def test_sessions_and_questions_pass_over_a_socket() -> None:
    async with pair() as made:
        assert (made.links["host"].peer, made.links["edge"].peer) == ("e", "h")
        port = await made.end("edge").open(Opening())
        client = FakeClient(port)
        port.attach(client)
        port.offer(AppendAudio(audio=b"\x01" * 100_000))
        assert await made.end("host").ask(AskLook()) == Done()
        (session,) = made.servers["host"].sessions
        assert session.said == [AppendAudio(audio=b"\x01" * 100_000)]
        session.say(sound("a"))
        assert await made.end("edge").ask(AskLook()) == Done()
        assert [delivery.event for delivery in client.got] == [sound("a")]


async def test_what_is_too_much_to_be_written_at_once_waits_and_is_not_lost_at_the_end() -> None:
    async with pair(pace=lambda: WritePace(gap_s=3600.0, at_once=2)) as made:
        end = made.end("edge")
        for _ in range(2):
            assert await end.ask(AskLook()) == Done()  # little was said just before: at once
        end.outbox.put(Beat())
        end.outbox.put(Beat())
        for _ in range(20):
            await asyncio.sleep(0)
        host = made.servers["host"]
        assert host.heard == []
        made.links["edge"].close("over")
        await made.left["host"].wait()
        assert host.heard[:2] == [Beat(), Beat()]


async def test_all_that_one_turn_of_the_loop_says_is_one_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames: list[int] = []
    write = link_module.encode_messages

    def counted(messages: Any) -> bytes:
        frames.append(len(messages))
        return write(messages)

    monkeypatch.setattr(link_module, "encode_messages", counted)
    async with pair() as made:
        frames.clear()
        for _ in range(50):
            made.end("edge").begin(Opening())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert frames[0] == 50


async def test_who_does_not_know_the_secret_gets_no_link() -> None:
    async with pair(b"guessed, not known", joined=False) as made:
        await made.left["host"].wait()
        assert made.links["host"].end is None
        assert not made.joined["host"].is_set()


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x01\x00\x00\x00\xc1",
        b"\x00" * 8000,
        msgspec.msgpack.encode("GET / HTTP/1.1"),
        b"GET / HTTP/1.1\r\n\r\n" * 400,
    ],
)
async def test_noise_ends_the_connection_and_nothing_else(data: bytes) -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    async with asyncio.TaskGroup() as group:
        made = Pair(group, b"s" * 16)
        await loop.create_connection(lambda: made.links["host"], sock=ours)
        reader, writer = await asyncio.open_connection(sock=theirs)
        writer.write(data)
        writer.write_eof()
        await made.left["host"].wait()
        await reader.read()
        writer.close()
    assert made.links["host"].end is None


async def test_a_link_on_which_nothing_comes_is_lost() -> None:
    async with pair() as made:
        made.links["edge"]._transport.pause_reading()  # type: ignore[union-attr]
        made.wheel.set(made.links["host"], None)  # it says nothing any more
        for _ in range(int(SILENCE_S / BEAT_S) + 1):
            made.clock.advance(BEAT_S)
        await made.left["edge"].wait()
        assert made.gone["edge"] == "nothing came for 7 s"
        await made.left["host"].wait()


async def test_a_process_that_stood_still_does_not_take_that_for_the_silence_of_the_other() -> None:
    async with pair() as made:
        made.links["edge"]._transport.pause_reading()  # type: ignore[union-attr]
        made.wheel.set(made.links["host"], None)
        made.clock.stall(10 * SILENCE_S)
        made.clock.advance(0)
        for _ in range(int(SILENCE_S / BEAT_S) - 1):
            made.clock.advance(BEAT_S)
        await asyncio.sleep(0)
        assert made.gone == {}
        for _ in range(2):
            made.clock.advance(BEAT_S)
        await made.left["edge"].wait()
        assert made.gone["edge"] == "nothing came for 7 s"
        await made.left["host"].wait()


async def test_signs_of_life_keep_it() -> None:
    async with pair() as made:
        for _ in range(6):
            made.clock.advance(BEAT_S)
            assert await made.end("edge").ask(AskLook()) == Done()
            assert await made.end("host").ask(AskLook()) == Done()
        assert Beat() in made.servers["host"].heard


async def test_a_full_socket_stops_output_until_it_is_read_again() -> None:
    async with pair() as made:
        port = await made.end("edge").open(Opening())
        client = FakeClient(port)
        port.attach(client)
        assert await made.end("edge").ask(AskLook()) == Done()
        (session,) = made.servers["host"].sessions
        made.links["edge"]._transport.pause_reading()  # type: ignore[union-attr]
        ballast = Hello("x" * (2 * HIGH_WATER_BYTES), "e")
        made.end("host").outbox.put(ballast)
        await until(lambda: not made.end("host").outbox.writable)
        session.say(sound("a"))
        await asyncio.sleep(0)
        assert session.pulled == []
        made.links["edge"]._transport.resume_reading()  # type: ignore[union-attr]
        await until(lambda: client.got)
        assert session.pulled == [1]


async def test_a_bug_behind_a_link_ends_that_link_alone() -> None:
    class Broken(Exception):
        pass

    async with pair() as made:

        def receive(_arrival: object) -> None:
            raise Broken

        made.servers["host"].receive = receive  # type: ignore[assignment]
        made.end("edge").begin(Opening())
        await made.left["host"].wait()
        await made.left["edge"].wait()


async def test_messages_that_are_too_long_are_refused_and_the_link_goes_on() -> None:
    async with pair() as made:
        edge, host = made.end("edge"), made.end("host")
        port = await edge.open(Opening())
        client = FakeClient(port)
        port.attach(client)
        long = bytes(MAX_FRAME_BYTES)

        with pytest.raises(LimitExceeded, match="the limit is 67107840") as refused:
            port.offer(AppendAudio(audio=long))
        assert refused.value.code == "message_too_large"
        with pytest.raises(LimitExceeded, match="67108864") as refused:
            await edge.ask(AskKeepAnswer("k", long))
        assert refused.value.code == "message_too_large"
        made.servers["host"].reply = KnownAnswer(long)
        with pytest.raises(DuologueError, match="67108864") as failed:
            await edge.ask(AskLook())
        assert failed.value.code == "server_error", "no fault of who asks"
        made.servers["host"].reply = Done()

        # What comes with one that is too long is sent all the same, in order.
        long_input = InputAppended("r", AudioChunk(long, 16_000))
        edge.outbox.put(Beat())
        edge.outbox.put(long_input)
        port.offer(AppendAudio(audio=b"\x01\x02"))
        assert await edge.ask(AskLook()) == Done()
        assert made.servers["edge"].unsaid == [long_input]
        assert made.servers["host"].heard == [Beat()]
        assert made.servers["host"].sessions[0].said == [AppendAudio(audio=b"\x01\x02")]
        host.outbox.put(Beat())
        assert await host.ask(AskLook()) == Done()
        assert made.gone == {}


async def test_what_cannot_be_written_fails_alone_and_the_link_goes_on() -> None:
    wide: Any = 10**30
    async with pair() as made:
        edge = made.end("edge")
        port = await edge.open(Opening())
        client = FakeClient(port)
        port.attach(client)
        with pytest.raises(DuologueError, match="cannot be written"):
            await edge.ask(AskKeepAnswer(wide, b""))
        with pytest.raises(ProtocolError, match="cannot be written"):
            await edge.open(Opening(model=wide))
        assert client.ended is None
        port.played("item", wide)
        assert await edge.ask(AskLook()) == Done()
        assert client.ended == "server_error"
        assert made.gone == {}
