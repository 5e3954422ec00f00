from __future__ import annotations

import pytest

from duologue.clients.errors import ConnectionLost
from duologue.clients.reconnect.doors import ByAddress, FirstMessage, Place
from duologue.protocol.duplex.commands import ResumeSession
from duologue.protocol.events import AudioCleared
from tests.fakes.server import FakeTransport

PLACE = Place("sess_1", "secret", 41)


async def test_the_duplex_dialect_says_who_comes_in_its_first_message() -> None:
    transport = FakeTransport(AudioCleared())

    async def open_transport() -> FakeTransport:
        return transport

    door = FirstMessage(open_transport)
    assert door.acknowledges
    opened, first = await door.open(PLACE)
    assert opened is transport
    assert first.event == AudioCleared()
    assert transport.sent == [
        ResumeSession(session_id="sess_1", resume_token="secret", last_received_server_event_seq=41)
    ]


async def test_the_plain_one_says_it_in_the_address() -> None:
    transport = FakeTransport(AudioCleared())
    asked: list[tuple[str, str]] = []

    async def open_transport(session_id: str, token: str) -> FakeTransport:
        asked.append((session_id, token))
        return transport

    door = ByAddress(open_transport)
    assert not door.acknowledges
    assert (await door.open(PLACE))[1].event == AudioCleared()
    assert asked == [("sess_1", "secret")]
    assert transport.sent == []


async def test_a_connection_that_brings_nothing_is_let_go() -> None:
    transport = FakeTransport()
    transport.say(ConnectionLost("gone"))

    async def open_transport() -> FakeTransport:
        return transport

    with pytest.raises(ConnectionLost):
        await FirstMessage(open_transport).open(PLACE)
    assert transport.closed
