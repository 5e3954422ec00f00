"""What all stand-ins have in common."""

from __future__ import annotations

import pytest

from duologue.protocol.commands import ClearAudio, Command, CommitAudio
from duologue.protocol.errors import error_body, refused
from duologue.protocol.events import AudioCleared, ErrorEvent
from duologue.sessions.port import Joined
from duologue.sessions.stand_ins.stand_in import MAX_WAITING_ERRORS, StandIn
from tests.fakes.link import FakeClient, FakeSession

MISTAKE = error_body(refused("no", None))


class Expectant(StandIn):
    """Becomes a session at its first word."""

    def __init__(self, session: Joined) -> None:
        super().__init__()
        self.to_come = session
        self.given_up = 0

    def _offer_early(self, command: Command) -> None:
        attachment = self._attachment
        assert attachment is not None
        self._become(self.to_come)
        self.to_come.attach(attachment)

    def _give_up(self) -> None:
        self.given_up += 1


@pytest.fixture
def port() -> Expectant:
    return Expectant(FakeSession("sess_1"))


def joined(port: Expectant) -> FakeClient:
    client = FakeClient(port)
    port.attach(client)
    return client


def test_before_there_is_a_session_mistakes_are_answered_without_a_number(port: Expectant) -> None:
    client = joined(port)
    port.played("item", 100)
    port.reject(MISTAKE)
    assert port.id == ""
    assert [delivery.event for delivery in client.got] == [ErrorEvent(error=MISTAKE)]
    assert [delivery.seq for delivery in client.got] == [0]


def test_once_there_is_one_everything_is_handed_on(port: Expectant) -> None:
    client = joined(port)
    port.offer(CommitAudio())
    port.offer(ClearAudio())
    port.played("item", 100)
    assert port.id == "sess_1"
    assert port.to_come.said == [ClearAudio()]
    assert port.to_come.heard == {"item": 100}
    port.to_come.say(AudioCleared())
    assert len(client.got) == 1
    port.detach(client)
    assert (port.to_come.detached, port.given_up) == (1, 0)
    port.close("enough")
    assert port.to_come.closed == "enough"


def test_one_that_becomes_another_hands_on_what_that_one_becomes(port: Expectant) -> None:
    # As a client that waits in the queue, and only then describes its session.
    outer = Expectant(port)
    client = joined(outer)
    for word in (CommitAudio(), CommitAudio(), ClearAudio()):
        outer.offer(word)
    assert port.to_come.said == [ClearAudio()]
    port.to_come.say(AudioCleared())
    assert [delivery.event for delivery in client.got] == [AudioCleared()]


def test_who_goes_or_is_closed_before_gives_up_once(port: Expectant) -> None:
    client = joined(port)
    port.close("enough")
    assert client.ended == "enough"
    port.detach(client)
    assert port.given_up == 1
    port.offer(CommitAudio())
    port.reject(MISTAKE)
    assert port.to_come.said == []
    assert port.pull(1000).deliveries == []


def test_who_only_makes_mistakes_and_reads_nothing_is_let_go(port: Expectant) -> None:
    client = FakeClient(port)
    client.reading = False
    port.attach(client)
    for _ in range(MAX_WAITING_ERRORS):
        port.reject(MISTAKE)
    assert client.ended is None
    port.reject(MISTAKE)
    assert (client.ended, port.given_up) == ("client_too_slow", 1)
