from __future__ import annotations

from collections.abc import Sequence

from structlog.testing import capture_logs

from duologue.hosts.directory import HostEntry
from duologue.hosts.registrar import Lookout, Registrar
from tests.fakes.directory import FakeDirectory
from tests.fakes.link import until

ENTRY = HostEntry(tag="abc123", address="10.0.0.1", port=9000, free=3)
QUICK_S = 0.003


async def test_a_host_says_again_and_again_that_it_is_there_until_it_stops() -> None:
    directory = FakeDirectory()
    registrar = Registrar(directory, lambda: ENTRY, QUICK_S)
    await registrar.start()
    assert directory.kept == {"abc123": ENTRY}
    await until(lambda: directory.puts > 2)
    await registrar.stop()
    assert directory.kept == {}
    assert directory.closed


async def test_a_directory_that_is_gone_is_said_once_and_one_that_is_back_too() -> None:
    directory = FakeDirectory()
    directory.is_lost = True
    with capture_logs() as logs:
        registrar = Registrar(directory, lambda: ENTRY, QUICK_S)
        await registrar.start()
        directory.is_lost = False
        await until(lambda: directory.kept)
        await until(lambda: directory.puts > 2)
        directory.is_lost = True
        await registrar.stop()
    said = [each["event"] for each in logs]
    assert said[:2] == ["directory_lost", "directory_back"]
    assert said.count("directory_back") == 1


async def test_a_gateway_hears_of_all_hosts_and_keeps_what_it_knows(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("duologue.hosts.registrar.LOOK_S", QUICK_S)
    directory = FakeDirectory()
    directory.kept["abc123"] = ENTRY
    told: list[Sequence[HostEntry]] = []
    lookout = Lookout(directory, told.append)
    await lookout.start()
    assert told == [[ENTRY]]
    directory.is_lost = True
    before = len(told)
    await until(lambda: lookout._is_lost)
    assert len(told) - before <= 1
    directory.is_lost = False
    directory.kept.clear()
    await until(lambda: told[-1] == [])
    await lookout.stop()
    assert directory.closed
