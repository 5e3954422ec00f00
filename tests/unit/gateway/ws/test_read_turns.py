from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from duologue.gateway.ws.heartbeat import Heartbeat
from duologue.gateway.ws.read_turns import SLICE_BYTES, PacedParser, ReadTurns
from duologue.gateway.ws.reading_gate import ReadingGate


class FakeTransport:
    def __init__(self) -> None:
        self.reading = True
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.closing
        self.reading = True


class Client:
    """A connection whose parser notes what it is fed."""

    def __init__(self, turns: ReadTurns, seen: list[tuple[str, int]], name: str = "") -> None:
        self.transport = FakeTransport()
        self.failed = 0
        self._seconds = 0.0
        self.fed = b""
        self.lost = False
        self.chokes_at = b"never"
        self._seen = seen
        self._name = name
        self.on_slice: Callable[[], None] = lambda: None
        self.gate = ReadingGate(cast(asyncio.Transport, self.transport))
        self.heartbeat = Heartbeat(20.0, 0.0)
        self.paced = PacedParser(self, self.gate, turns, self.heartbeat, self._later, self._fail)

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self.fed += data
        self._seen.append((self._name, len(data)))
        self.on_slice()
        return self.chokes_at in data, b""

    def feed_eof(self) -> None:
        self.lost = True

    def _later(self) -> float:
        """Tell the time: a second later each time."""
        self._seconds += 1
        return self._seconds

    def _fail(self) -> None:
        self.failed += 1


async def emptied(turns: ReadTurns) -> int:
    """Let the loop turn until nobody waits; returns how often it did."""
    rounds = 0
    while len(turns):
        await asyncio.sleep(0)
        rounds += 1
    return rounds


async def test_little_is_parsed_at_once() -> None:
    turns = ReadTurns()
    client = Client(turns, [])
    client.paced.data_received(b"x" * SLICE_BYTES)
    assert (len(client.fed), len(turns), client.transport.reading) == (SLICE_BYTES, 0, True)


async def test_much_is_parsed_in_slices_and_the_loop_turns_between_them() -> None:
    turns = ReadTurns()
    client = Client(turns, seen := [])
    data = bytes(range(256)) * 256 + b"end"
    client.paced.data_received(data)
    assert not client.transport.reading
    assert await emptied(turns) >= 5
    assert [size for _, size in seen] == [SLICE_BYTES] * 4 + [3]
    assert (client.fed, client.transport.reading) == (data, True)
    assert client.heartbeat.heard_at == 6  # what came, and five slices of it


async def test_what_follows_a_flood_waits_behind_it() -> None:
    turns = ReadTurns()
    client = Client(turns, [])
    client.paced.data_received(b"a" * (SLICE_BYTES + 1))
    client.paced.data_received(b"b")
    await emptied(turns)
    assert client.fed == b"a" * (SLICE_BYTES + 1) + b"b"


async def test_the_last_slice_does_not_undo_pressure_that_came_on_during_another() -> None:
    turns = ReadTurns()
    client = Client(turns, seen := [])

    def press() -> None:
        if len(seen) == 2:
            client.gate.hold("pressure")

    client.on_slice = press
    client.paced.data_received(b"x" * (3 * SLICE_BYTES))
    await emptied(turns)
    assert (len(seen), client.transport.reading) == (3, False)
    client.gate.release("pressure")
    assert client.transport.reading


async def test_pressure_that_ends_between_slices_lets_nothing_in_before_the_last() -> None:
    turns = ReadTurns()
    client = Client(turns, seen := [])
    client.paced.data_received(b"x" * (2 * SLICE_BYTES))
    client.gate.hold("pressure")
    client.gate.release("pressure")
    assert not client.transport.reading
    await emptied(turns)
    assert (len(seen), client.transport.reading) == (2, True)


async def test_connections_take_turns() -> None:
    turns = ReadTurns()
    seen: list[tuple[str, int]] = []
    for name in "abc":
        Client(turns, seen, name).paced.data_received(b"x" * (3 * SLICE_BYTES))
    await emptied(turns)
    assert [name for name, _ in seen] == list("abc" * 3)


async def test_after_what_cannot_be_read_nothing_is_parsed_but_the_peer_is_read() -> None:
    turns = ReadTurns()
    client = Client(turns, [])
    client.chokes_at = b"!"
    client.paced.data_received(b"!" * (3 * SLICE_BYTES))
    await emptied(turns)
    assert (len(client.fed), client.failed, client.transport.reading) == (SLICE_BYTES, 1, True)


async def test_a_connection_that_is_lost_drops_what_was_left() -> None:
    turns = ReadTurns()
    client = Client(turns, [])
    client.paced.data_received(b"x" * (3 * SLICE_BYTES))
    client.transport.closing = True
    client.paced.feed_eof()
    await emptied(turns)
    assert (client.fed, client.lost) == (b"", True)
