"""A directory in Redis, for gateways and session hosts on several machines.

The only importer of ``redis``. It must not know what hosts do.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import redis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo
from redis.exceptions import RedisError

from duologue.hosts.directory import DirectoryLost, HostEntry

PREFIX = "duologue:host:"
TIMEOUT_S = 2.0
MAX_HOSTS = 1024

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(HostEntry).decode


class RedisDirectory:
    """One key for each host, which expires when its host no longer renews it.

    Args:
        url: ``redis://[:password@]host:port/number``, or ``rediss://`` with TLS.
    """

    def __init__(self, url: str) -> None:
        # It would look its version up in files for every connection, on the event loop.
        self._redis = Redis.from_url(
            url,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),  # who asks asks again in a moment anyway
            driver_info=DriverInfo(lib_version=redis.__version__),
        )

    async def put(self, entry: HostEntry, ttl_s: float) -> None:
        """Keep an entry for so long."""
        try:
            await self._redis.set(PREFIX + entry.tag, _encode(entry), px=int(ttl_s * 1000))
        except (RedisError, OSError) as exc:
            raise DirectoryLost(type(exc).__name__) from exc

    async def remove(self, tag: str) -> None:
        """Forget a host."""
        try:
            await self._redis.delete(PREFIX + tag)
        except (RedisError, OSError) as exc:
            raise DirectoryLost(type(exc).__name__) from exc

    async def entries(self) -> Sequence[HostEntry]:
        """Return all hosts; what is none of ours is left out."""
        try:
            keys = [key async for key in self._redis.scan_iter(match=PREFIX + "*", count=MAX_HOSTS)]
            values = await self._redis.mget(keys[:MAX_HOSTS]) if keys else []
        except (RedisError, OSError) as exc:
            raise DirectoryLost(type(exc).__name__) from exc
        entries = []
        for value in values:
            try:
                if value is not None:
                    entries.append(_decode(value))
            except msgspec.MsgspecError:
                continue
        return entries

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()
