from __future__ import annotations

import asyncio
import socket

import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import EngineError
from duologue.engines.executors.ray.door import Purpose, come_in, let_in, open_door

HOST, SECRET = "127.0.0.1", b"s" * 32


def port_of(door: socket.socket) -> int:
    return int(door.getsockname()[1])


async def inside(door: socket.socket, timeout_s: float = 10) -> dict[Purpose, socket.socket]:
    return await asyncio.to_thread(let_in, door, SECRET, SystemClock(), timeout_s)


async def test_who_knows_the_secret_gets_in_for_each_purpose_and_bytes_follow() -> None:
    with open_door(HOST) as door:
        waiting = asyncio.create_task(inside(door))
        output = await come_in(HOST, port_of(door), SECRET, Purpose.OUTPUT)
        link = await come_in(HOST, port_of(door), SECRET, Purpose.LINK)
        ends = await waiting
    with output, link, ends[Purpose.LINK], ends[Purpose.OUTPUT]:
        for line, end in ((link, ends[Purpose.LINK]), (output, ends[Purpose.OUTPUT])):
            line.send(b"one")
            assert end.recv(16) == b"one"
            assert end.gettimeout() is None, "a worker's link blocks"
            for option in (socket.TCP_NODELAY, socket.TCP_KEEPINTVL):
                assert end.getsockopt(socket.IPPROTO_TCP, option) == 1


async def test_others_are_sent_away_and_the_engine_gets_in_all_the_same() -> None:
    with open_door(HOST) as door:
        waiting = asyncio.create_task(inside(door))
        port = port_of(door)
        with pytest.raises(EngineError, match="is not the worker that was placed"):
            await come_in(HOST, port, b"another secret", Purpose.LINK)
        for noise in (b"", b"GET / HTTP/1.1\r\n\r\n", b"X" * 100, b"L" + b"a" * 32 + b"b" * 32):
            with socket.create_connection((HOST, port)) as stranger:
                stranger.send(noise)
        link = await come_in(HOST, port, SECRET, Purpose.LINK)
        again = await come_in(HOST, port, SECRET, Purpose.LINK)
        output = await come_in(HOST, port, SECRET, Purpose.OUTPUT)
        ends = await waiting
    with link, again, output, ends[Purpose.LINK], ends[Purpose.OUTPUT]:
        again.setblocking(True)
        assert await asyncio.to_thread(again.recv, 1) == b"", "each purpose once"


async def test_a_door_is_not_kept_open_for_ever() -> None:
    with open_door(HOST) as door:
        waiting = asyncio.create_task(inside(door, timeout_s=0.2))
        with await come_in(HOST, port_of(door), SECRET, Purpose.LINK) as link:
            with pytest.raises(TimeoutError):
                await waiting
            link.setblocking(True)
            assert await asyncio.to_thread(link.recv, 1) == b""


async def test_a_door_that_is_not_there_is_an_error_with_its_address() -> None:
    with open_door(HOST) as door:
        port = port_of(door)
    with pytest.raises(EngineError, match=f"{HOST}:{port} cannot be reached"):
        await come_in(HOST, port, SECRET, Purpose.LINK)


async def test_a_door_that_closes_in_the_midst_is_an_error() -> None:
    with open_door(HOST) as door:
        coming = asyncio.create_task(come_in(HOST, port_of(door), SECRET, Purpose.LINK))
        line, _ = await asyncio.to_thread(door.accept)
        await asyncio.to_thread(line.recv, 64)
        line.close()
        with pytest.raises(EngineError, match="let nobody in"):
            await coming
