"""A gateway's link to its host: made, and made again when it was lost."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from duologue.composition.directories import gateway_context, host_context
from duologue.core.clock import SystemClock
from duologue.core.wheel import TimerWheel
from duologue.gateway.settings import TlsSettings
from duologue.gateway.tls import choose_certificate
from duologue.hosts.connecting import Address, HostConnection, Identity
from duologue.hosts.remote_host import RemoteHost
from duologue.hosts.settings import HostsSettings, LinkSettings
from tests.fakes.link import until
from tests.unit.hosts.small_host import figures, small_host

SECRET = b"a secret of two machines"


async def test_a_host_that_comes_later_or_again_is_found() -> None:
    clock, wheel = SystemClock(), TimerWheel(asyncio.get_running_loop().call_at)
    remote = RemoteHost(["llm"], LinkSettings(), clock, figures)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "host.sock"
        connection = HostConnection(remote, Address(path), Identity("edge-0", "1"), clock, wheel)
        await connection.start()
        for _ in range(2):
            assert not remote.is_linked
            async with small_host(path):
                await remote.wait_status(lambda status: status.loaded)
                assert remote.name == "host"
            await until(lambda: not remote.is_linked)
        await connection.stop()
        await connection.stop()


async def test_a_host_of_another_release_is_no_host() -> None:
    clock, wheel = SystemClock(), TimerWheel(asyncio.get_running_loop().call_at)
    remote = RemoteHost(["llm"], LinkSettings(), clock, figures)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "host.sock"
        async with small_host(path) as host:
            wrong = HostConnection(remote, Address(path), Identity("e", "2"), clock, wheel)
            await wrong.start()
            await until(lambda: host.server._links)
            await until(lambda: not host.server._links)
            assert not remote.is_linked
            await wrong.stop()


async def test_the_first_news_are_that_there_is_no_host_or_how_it_is() -> None:
    clock, wheel = SystemClock(), TimerWheel(asyncio.get_running_loop().call_at)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "host.sock"

        def connection(remote: RemoteHost) -> HostConnection:
            return HostConnection(remote, Address(path), Identity("edge-0", "1"), clock, wheel)

        early = RemoteHost(["llm"], LinkSettings(), clock, figures)
        missed = connection(early)
        await missed.start()
        await missed.first_news()
        assert not early.is_linked
        await missed.stop()
        async with small_host(path):
            remote = RemoteHost(["llm"], LinkSettings(), clock, figures)
            found = connection(remote)
            await found.start()
            await found.first_news()
            remote.check_room()
            await found.stop()


def test_an_address_is_shown_as_people_write_it() -> None:
    assert str(Address(Path("/run/host.sock"))) == "/run/host.sock"
    assert str(Address(host="10.0.0.1", port=9)) == "10.0.0.1:9"


async def test_links_between_machines_are_encrypted_where_there_is_a_certificate() -> None:
    clock, wheel = SystemClock(), TimerWheel(asyncio.get_running_loop().call_at)
    with TemporaryDirectory() as folder:
        certificate = await asyncio.to_thread(
            choose_certificate, TlsSettings(dev=True), Path(folder), ("localhost",), time.time()
        )
        assert certificate is not None
        hosts = HostsSettings(
            link_certificate=certificate.path,
            link_key=certificate.key_path,
            link_ca=certificate.path,
        )
        shown, believed = await asyncio.to_thread(
            lambda: (host_context(hosts), gateway_context(hosts))
        )
        async with small_host(Path(folder) / "host.sock", secret=SECRET) as host:
            port = await host.server.listen_tcp("127.0.0.1", 0, shown)
            address = Address(host="localhost", port=port)
            remote = RemoteHost(["llm"], LinkSettings(), clock, figures)
            identity = Identity("edge-0", "1", SECRET, believed)
            connection = HostConnection(remote, address, identity, clock, wheel)
            await connection.start()
            await remote.wait_status(lambda status: status.loaded)
            await connection.stop()
