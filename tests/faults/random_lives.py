"""A thousand random lives of a call over real sockets, of which nothing may be left.

Places, sessions, tasks, timers, bytes and file descriptors are as they were. The model is an echo,
and the person counts: each sample that is lost, doubled or late would show. Also a program:
``python -m tests.faults.random_lives --lives 1000``.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import gc
import os
import random
import sys
from array import array
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from duologue.duplex_plugins.echo import EchoPlugin
from duologue.duplex_plugins.scripted import ScriptedPlugin, ScriptedSettings
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import SessionSettings
from duologue.telemetry import configure_logging
from tests.patience import PATIENCE_S, until
from tests.unit.gateway.raw_websocket import UPGRADE, RawWebSocket, connected
from tests.unit.gateway.small_server import SmallServer, small_server

LIVES = 1000
AT_ONCE = 8
PLACES = 8
TRIES = 3000
KEY = "sesame"
FAILING = "/v1/realtime?model=failing"
FIRST = f"/v1/duplex?model=echo&autostart=0&api_key={KEY}"
SETTINGS = SessionSettings(max_sessions=PLACES, send_lead_ms=0, disconnect_grace_s=20)
DOOR = GatewaySettings(api_keys=(KEY,), close_timeout_s=20.0)
AUTH = {"Authorization": f"Bearer {KEY}"}


def counted(start: int, size: int) -> str:
    samples = array("h", ((n % 65_536) - 32_768 for n in range(start, start + size)))
    return base64.b64encode(samples.tobytes()).decode()


class Life:
    """One call, and what a client of it must be sure of."""

    def __init__(self, server: SmallServer, seed: int) -> None:
        self.server = server
        self.dice = random.Random(seed)
        self.peer: RawWebSocket | None = None
        self.session_id = ""
        self.token = ""
        self.received = 0
        self.said = 0
        self.heard: list[int] = []
        self.floor = 0
        """Nothing that was said before this is to be heard any more."""
        self.was_cut = False
        self._lines = AsyncExitStack()

    async def dial(self) -> RawWebSocket:
        """Connect. Where a place is about to be given back, one is told to try again."""
        for _ in range(TRIES):
            peer = await self._lines.enter_async_context(connected(self.server.port))
            answer = await peer.ask(FIRST, UPGRADE | AUTH)
            if answer.status == 101:
                self.peer = peer
                return peer
            assert (answer.status, answer.headers["Retry-After"]) == (503, "5"), answer
            await asyncio.sleep(0.02)
        raise AssertionError("the server is full for good")

    async def open(self) -> None:
        session = {"turn_detection": None, "sample_rate_hz": 24000}
        for _ in range(TRIES):
            peer = await self.dial()
            peer.send_event({"type": "session.update", "session": session})
            first = await peer.event()
            if first["type"] != "error":
                break
            # It was let in since somebody may come back, and wants a place of its own.
            assert first["error"]["code"] == "server_full", first
            await part_from(peer)
            await asyncio.sleep(0.02)
        for event in (first, *await peer.until("session.updated")):
            self.take(event)

    def take(self, event: dict[str, Any]) -> None:
        assert event["type"] != "error", event
        if "resume_token" in event:
            self.token = event["resume_token"]
            self.session_id = event["session"]["id"]
        seq = event.get("server_event_seq")
        if seq is not None:
            assert seq > self.received, "an event came twice, or out of order"
            assert seq == self.received + 1 or self.was_cut, "an event is missing"
            self.received = seq
        if event["type"] == "response.output_audio.delta":
            new = array("h", base64.b64decode(event["delta"]))
            self.heard.extend(n + 32_768 for n in new)
            assert self.heard[-len(new)] >= self.floor, "something old was heard"

    async def catch_up(self) -> None:
        """Read all that comes until the server has heard what was said."""
        assert self.peer is not None
        self.peer.send_event({"type": "session.heartbeat"})
        for event in await self.peer.until("session.heartbeat_ack"):
            self.take(event)

    # Steps

    async def speak(self) -> None:
        assert self.peer is not None
        size = self.dice.randint(1, 1000)
        self.say(size)
        await self.catch_up()

    def say(self, size: int) -> None:
        assert self.peer is not None
        append = {"type": "input_audio_buffer.append", "audio": counted(self.said, size)}
        self.peer.send_event({**append, "start_sample": self.said})
        self.said += size

    async def acknowledge(self) -> None:
        assert self.peer is not None
        self.peer.send_event({"type": "session.event_ack", "server_event_seq": self.received})

    async def cut_in(self) -> None:
        """Interrupt; sometimes the line breaks before anybody hears of it."""
        assert self.peer is not None
        self.peer.send_event({"type": "barge_in"})
        self.was_cut = True
        if self.dice.random() < 0.5:
            self.floor = self.said
            self.peer.finish()
            await self.peer.lost()
            await self.come_back()
        else:
            await self.catch_up()
            self.floor = self.said

    async def drop(self) -> None:
        assert self.peer is not None
        self.say(self.dice.randint(1, 500))  # on its way, or lost
        self.dice.choice((RawWebSocket.reset, RawWebSocket.finish))(self.peer)
        await self.come_back()

    async def take_over(self) -> None:
        """Come back while the connection is still there."""
        await self.come_back()

    async def come_back(self) -> None:
        earlier = self.peer
        peer = await self.dial()
        peer.send_event(
            {
                "type": "session.resume",
                "session_id": self.session_id,
                "resume_token": self.token,
                "last_received_server_event_seq": self.received,
            }
        )
        greeting = await peer.event()
        assert greeting["type"] == "session.resumed", greeting
        self.take(greeting)
        missing = self.said - greeting["next_sample"]
        if missing:
            self.said -= missing
            self.say(missing)
        await self.catch_up()
        if earlier is not None:
            await part_from(earlier)

    async def live(self) -> None:
        await self.open()
        steps: tuple[Callable[[], Awaitable[None]], ...] = (
            self.speak,
            self.speak,
            self.speak,
            self.acknowledge,
            self.drop,
            self.take_over,
            self.cut_in,
        )
        for _ in range(self.dice.randint(0, 6)):
            await self.dice.choice(steps)()
        await self.end()
        self.check()

    async def end(self) -> None:
        assert self.peer is not None
        await self.catch_up()
        how = self.dice.choice(("close", "close twice", "close frame and close"))
        self.peer.send_event({"type": "session.close"})
        if how == "close twice":
            self.peer.send_event({"type": "session.close"})
        if how == "close frame and close":
            self.peer.close()
        else:
            await self.peer.until("session.closed")
        await part_from(self.peer)

    def check(self) -> None:
        if self.was_cut:
            assert self.heard == sorted(set(self.heard)), "something was heard twice"
            return
        # The echo says nothing of the first piece, which makes it begin.
        first = self.heard[0] if self.heard else self.said
        assert self.heard == list(range(first, self.said))

    async def leave(self) -> None:
        await self._lines.aclose()


async def part_from(peer: RawWebSocket) -> None:
    """Wait until the server lets go of a connection, and answer its goodbye, if there is one.

    Whoever leaves that without an answer is waited for, which other tests are about.
    """
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        await peer.goodbye()
        peer.close()
    await peer.lost()


async def bad_key(server: SmallServer, _dice: random.Random) -> None:
    async with connected(server.port) as peer:
        answer = await peer.ask("/v1/duplex?autostart=0", UPGRADE)
        assert answer.status == 401


async def be_let_in(peer: RawWebSocket, path: str) -> None:
    """Ask until there is a place."""
    for _ in range(TRIES):
        answer = await peer.ask(path, UPGRADE | AUTH)
        if answer.status == 101:
            return
        assert answer.json["error"]["code"] == "server_full", answer
        await asyncio.sleep(0.02)
    raise AssertionError("the server is full for good")


async def bad_config(server: SmallServer, dice: random.Random) -> None:
    async with connected(server.port) as peer:
        await be_let_in(peer, FIRST)
        peer.send_event({"type": "session.update", "session": {"sample_rate_hz": 11}})
        assert (await peer.event())["type"] == "error"
        dice.choice((RawWebSocket.reset, RawWebSocket.finish))(peer)
        await peer.lost()


async def stage_fails(server: SmallServer, dice: random.Random) -> None:
    """No worker makes what is asked for: the answer fails, and the call goes on to any end."""
    async with connected(server.port) as peer:
        await be_let_in(peer, FAILING)
        for _ in range(dice.randint(1, 3)):
            peer.send_event({"type": "response.create"})
            done = (await peer.until("response.done"))[-1]["response"]
            assert done["status"] == "failed", done
            assert done["status_details"]["error"]["code"] == "stage_failed"
        if dice.random() < 0.5:
            peer.close()
            await peer.goodbye()
        else:
            dice.choice((RawWebSocket.reset, RawWebSocket.finish))(peer)
        await peer.lost()


async def given_up_midway(server: SmallServer, dice: random.Random) -> None:
    async with connected(server.port) as peer:
        head = "\r\n".join(
            [
                f"GET {FIRST} HTTP/1.1",
                "Host: h",
                *(f"{k}: {v}" for k, v in (UPGRADE | AUTH).items()),
            ]
        )
        peer.write((head + "\r\n\r\n").encode()[: dice.randrange(len(head) + 4)])
        dice.choice((RawWebSocket.reset, RawWebSocket.finish))(peer)
        await peer.lost()


async def a_life(server: SmallServer, dice: random.Random) -> None:
    life = Life(server, dice.randrange(1 << 30))
    try:
        await life.live()
    finally:
        await life.leave()


KINDS = (a_life, a_life, a_life, a_life, bad_key, bad_config, given_up_midway, stage_fails)
PLUGINS = {"echo": EchoPlugin(), "failing": ScriptedPlugin(ScriptedSettings())}


def descriptors() -> int:
    return len(os.listdir(Path("/proc/self/fd")))


async def live_all(seeds: Iterable[int]) -> None:
    """Live a life for each seed, several at a time, and check that nothing is left."""
    async with small_server(DOOR, SETTINGS, plugins=PLUGINS) as server:
        await a_life(server, random.Random(1))
        await server.realtime.wait_closed(PATIENCE_S)
        gc.collect()
        tasks, files = len(asyncio.all_tasks()), descriptors()
        waiting = iter(seeds)

        async def live_some() -> None:
            for seed in waiting:
                dice = random.Random(seed)
                await dice.choice(KINDS)(server, dice)

        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(live_some(), name=f"life-{number}")
        await server.realtime.wait_closed(PATIENCE_S)
        await until(lambda: len(asyncio.all_tasks()) <= tasks and descriptors() <= files)
        assert len(server.sessions) == 0
        assert server.sessions.kept_places == 0
        assert server.sessions.detached == 0
        assert len(server.wheel) == 0
        assert server.flights == []
        metrics = server.metrics
        assert metrics.sessions_active.value == 0
        tuple(server.sessions.note_fills())
        assert metrics.journal_bytes.value == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=LIVES)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    configure_logging(level="error")
    asyncio.run(live_all(range(chosen.seed, chosen.seed + chosen.lives)))
    sys.stdout.write(f"{chosen.lives} lives, and nothing is left\n")


if __name__ == "__main__":
    main()
