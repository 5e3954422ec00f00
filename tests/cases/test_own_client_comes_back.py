"""C51 and C55, with our own client: its line breaks in every way, and nothing is lost or doubled.

What is said and heard is a signal that counts: sample n is n, so that any hole, any repetition and
any exchange would show.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from duologue.clients import (
    AudioDropped,
    CallError,
    CallLost,
    ConnectionLost,
    DuplexClient,
    Reconnected,
    Reconnecting,
    ReconnectPolicy,
    SessionGone,
)
from duologue.clients.event_stream import EventStream
from duologue.gateway.settings import GatewaySettings
from duologue.protocol.commands import CreateItem
from duologue.protocol.events import ErrorEvent, SessionUpdated
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import AudioDelta
from duologue.sessions.settings import SessionSettings
from tests.fakes.breakable_line import BreakableLine, breakable_line
from tests.patience import PATIENCE_S
from tests.unit.gateway.small_server import SmallServer, small_server

FRAME = 480
FIRST_HEARD = FRAME
"""The echo says nothing of the frame that makes it begin."""

QUICK = ReconnectPolicy(silence_s=0.8, give_up_s=8.0, first_wait_s=0.05, longest_wait_s=0.2)

Break = Callable[[BreakableLine], None]


def fall_into_a_hole(line: BreakableLine) -> None:
    line.black_hole()
    asyncio.get_running_loop().call_later(0.1, line.heal)


def vanish_for_the_client_alone(line: BreakableLine) -> None:
    line.reset(server_notices=False)


BREAKS: dict[str, Break] = {
    "reset": BreakableLine.reset,
    "finish": BreakableLine.finish,
    "half open": vanish_for_the_client_alone,
    "black hole": fall_into_a_hole,
}


def counting(start: int, samples: int) -> bytes:
    return struct.pack(f"<{samples}h", *(n % 65536 - 32768 for n in range(start, start + samples)))


class Count:
    """Says the counting signal, and keeps what an echo of it sounds like."""

    def __init__(self, call: DuplexClient) -> None:
        self.call = call
        self.events: EventStream = call.events()
        self.said = 0
        self.heard = bytearray()
        self.seen: list[object] = []

    def say(self, frames: int) -> None:
        for _ in range(frames):
            self.call.send_audio(counting(self.said, FRAME))
            self.said += FRAME

    async def hear(self, samples: int | None = None) -> None:
        """Take what comes, until so much was heard; all that was said, without a number."""
        wanted = 2 * ((self.said if samples is None else samples) - FIRST_HEARD)
        async with asyncio.timeout(PATIENCE_S):
            while len(self.heard) < wanted:
                self.take(await anext(self.events))

    async def until(self, kind: type) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not isinstance(event := await anext(self.events), kind):
                self.take(event)
            self.take(event)

    def take(self, event: object) -> None:
        self.seen.append(event)
        if isinstance(event, AudioDelta):
            self.heard += event.delta

    def check(self) -> None:
        """All that was said came back, once, in order."""
        assert bytes(self.heard) == counting(FIRST_HEARD, self.said - FIRST_HEARD)
        assert [event for event in self.seen if isinstance(event, ErrorEvent)] == []


@asynccontextmanager
async def scene(
    policy: ReconnectPolicy = QUICK, sessions: SessionSettings | None = None
) -> AsyncIterator[tuple[SmallServer, BreakableLine, Count]]:
    async with (
        small_server(sessions=sessions) as server,
        breakable_line(server.port) as line,
        DuplexClient.connect(line.url, dialect="duplex", model="echo", reconnect=policy) as call,
    ):
        count = Count(call)
        await count.until(SessionUpdated)
        yield server, line, count


@pytest.mark.parametrize("way", BREAKS)
async def test_c55_the_signal_counts_on_across_a_broken_line(way: str) -> None:
    async with scene() as (server, line, count):
        count.say(10)
        await count.hear(5 * FRAME)
        for _ in range(3):
            # In the midst of a question and of its answer: some of it is under way.
            count.say(10)
            BREAKS[way](line)
            count.say(5)
            await count.until(Reconnected)
            count.say(5)
        await count.hear()
        count.check()
        assert line.connections >= 4  # a busy machine may take a line for dead that is not
        assert len(server.sessions) == 1
        told = [
            type(event) for event in count.seen if isinstance(event, Reconnecting | Reconnected)
        ]
        assert told[0] is Reconnecting
        assert told.count(Reconnected) >= 3
    assert len(server.sessions) == 0


@pytest.mark.parametrize("way", ["reset", "black hole"])
async def test_c51_each_command_arrives_once_and_in_order(way: str) -> None:
    async with scene() as (server, line, count):
        call = count.call
        number = 0
        for _ in range(3):
            for _ in range(5):
                item = MessageItem(id=f"item_{number}", role="user", content=(InputText(text="."),))
                call.send(CreateItem(item=item))
                number += 1
                if number % 5 == 3:
                    await asyncio.sleep(0)
                    BREAKS[way](line)
            await count.until(Reconnected)
        await call.retrieve(f"item_{number - 1}")
        (session,) = server.sessions.look()
        history = server.sessions.get(session.id)
        assert history is not None
        items = [item.id for item in history.machine.history.items()]
        assert [item for item in items if item in {f"item_{n}" for n in range(number)}] == [
            f"item_{n}" for n in range(number)
        ]
        assert [event for event in count.seen if isinstance(event, ErrorEvent)] == []


async def test_c51_a_reply_is_waited_for_across_the_gap() -> None:
    async with scene() as (_server, line, count):
        line.refuses = True
        line.reset()
        await count.until(Reconnecting)
        assert count.call.reconnecting
        async with asyncio.TaskGroup() as group:
            changed = group.create_task(count.call.update(instructions="Sing."))
            await count.until(Reconnecting)
            line.refuses = False
            await count.until(Reconnected)
        assert changed.result().instructions == "Sing."
        assert not count.call.reconnecting


async def test_c57_a_session_that_was_closed_meanwhile_is_named() -> None:
    async with scene() as (server, line, count):
        line.refuses = True
        line.reset()
        await count.until(Reconnecting)
        (session,) = server.sessions.look()
        waiting = server.sessions.get(session.id)
        assert waiting is not None
        waiting.close("closed")
        line.refuses = False
        await count.until(CallLost)
        with pytest.raises(SessionGone, match=r"over \(session_resume_conflict\).*Call again"):
            await count.until(Reconnected)
        assert isinstance(count.call.ended, SessionGone)
        assert count.call.ended.refused_with == "session_resume_conflict"


async def test_c57_a_session_whose_grace_is_over_is_named() -> None:
    short = SessionSettings(disconnect_grace_s=0.1)
    async with scene(sessions=short) as (server, line, count):
        line.refuses = True
        line.reset()
        await server.sessions.wait_empty(PATIENCE_S)
        line.refuses = False
        with pytest.raises(SessionGone, match="session_resume_expired"):
            await count.until(Reconnected)


async def test_a_server_that_is_not_there_any_more_is_given_up() -> None:
    policy = ReconnectPolicy(give_up_s=1.0, first_wait_s=0.02, longest_wait_s=0.1)
    async with scene(policy) as (_server, line, count):
        line.refuses = True
        line.reset()
        with pytest.raises(ConnectionLost, match=r"came about in 1 s \(\d+ attempts"):
            await count.until(Reconnected)
        attempts = [event.attempt for event in count.seen if isinstance(event, Reconnecting)]
        assert attempts == list(range(1, len(attempts) + 1))
        assert len(attempts) > 1
        (lost,) = (event for event in count.seen if isinstance(event, CallLost))
        assert lost.code == "connection_lost"


async def test_the_oldest_that_is_said_goes_where_a_gap_is_too_long() -> None:
    kept = 50
    policy = replace(QUICK, kept_bytes=2 * kept * FRAME)
    async with scene(policy) as (server, line, count):
        count.say(5)
        await count.hear()
        line.refuses = True
        line.reset()
        await count.until(Reconnecting)
        count.say(75)
        line.refuses = False
        await count.until(Reconnected)
        dropped = [event for event in count.seen if isinstance(event, AudioDropped)]
        assert len(dropped) == 1
        back = count.seen[-1]
        assert isinstance(back, Reconnected)
        lost = back.dropped_ms * 24
        # What was under way when the line broke may be waited for, too.
        assert lost == (75 - kept) * FRAME
        await count.hear()
        before, after = 5 * FRAME - FIRST_HEARD, 5 * FRAME + lost
        heard = bytes(count.heard)
        assert heard[: 2 * before] == counting(FIRST_HEARD, before)
        assert heard[2 * before : 2 * (before + lost)] == bytes(2 * lost)
        assert heard[2 * (before + lost) :] == counting(after, count.said - after)
        assert len(server.sessions) == 1


async def test_without_a_policy_a_broken_line_ends_the_call() -> None:
    async with small_server() as server, breakable_line(server.port) as line:
        call = DuplexClient.connect(line.url, dialect="duplex", model="echo", reconnect=None)
        async with call:
            line.reset()
            with pytest.raises(ConnectionLost):
                await call.wait_until(lambda: False)


async def test_c30_a_message_that_was_too_large_is_not_sent_again() -> None:
    """The session could be taken up again; to say the same once more would only end that, too."""
    async with (
        small_server(GatewaySettings(max_message_bytes=20_000)) as server,
        breakable_line(server.port) as line,
    ):
        async with DuplexClient.connect(
            line.url, dialect="duplex", model="echo", reconnect=QUICK
        ) as call:
            count = Count(call)
            await count.until(SessionUpdated)
            call.send_audio(counting(0, 20_000))
            with pytest.raises(CallError, match="20000"):
                await count.hear(1 << 20)
            assert not [event for event in count.seen if isinstance(event, Reconnecting)]
        assert line.connections == 1
        assert server.metrics.sessions_detached.value == 1
