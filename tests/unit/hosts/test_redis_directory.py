"""The directory in a real Redis."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis.asyncio import Redis

from duologue.hosts.directory import DirectoryLost, HostEntry
from duologue.hosts.redis_directory import PREFIX, RedisDirectory
from tests.fakes.redis_server import redis_server

ENTRY = HostEntry(tag="abc123", address="10.0.0.1", port=9000, free=3)


async def test_a_host_is_there_until_it_says_so_no_more(tmp_path: Path) -> None:
    async with redis_server(tmp_path) as server:
        directory = RedisDirectory(server.url)
        assert list(await directory.entries()) == []
        await directory.put(ENTRY, ttl_s=60)
        assert list(await directory.entries()) == [ENTRY]
        await directory.remove("abc123")
        assert list(await directory.entries()) == []
        await directory.close()


async def test_an_entry_expires_and_what_is_none_of_ours_is_left_alone(tmp_path: Path) -> None:
    async with redis_server(tmp_path) as server:
        directory, other = RedisDirectory(server.url), Redis.from_url(server.url)
        await other.set(f"{PREFIX}noise", b"{")
        await other.set("somebody:else", b"1")
        await directory.put(ENTRY, ttl_s=0.02)
        assert 0 < await other.pttl(f"{PREFIX}abc123") <= 20
        while await directory.entries():
            pass
        assert await other.get("somebody:else") == b"1"
        await other.aclose()
        await directory.close()


async def test_without_redis_it_says_so_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    async with redis_server(tmp_path) as server:
        directory = RedisDirectory(server.url)
        await directory.put(ENTRY, ttl_s=60)
        await server.kill()
        for attempt in (
            directory.entries(),
            directory.put(ENTRY, 60),
            directory.remove("abc123"),
        ):
            with pytest.raises(DirectoryLost):
                await attempt
        await server.start()
        await directory.put(ENTRY, ttl_s=60)
        assert list(await directory.entries()) == [ENTRY]
        await directory.close()
