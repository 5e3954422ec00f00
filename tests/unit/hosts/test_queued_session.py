"""A session that waits for a place, without sockets; tests/cases/test_call_queue.py has them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from duologue.core.errors import CapacityError, ProtocolError, RateLimited
from duologue.core.wheel import TimerWheel
from duologue.hosts.call_queue import CallQueue
from duologue.hosts.queued_session import (
    LOOK_S,
    MAX_EARLY_COMMANDS,
    QueuedSession,
)
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import ClearAudio, Command, CommitAudio
from duologue.protocol.duplex.events import SessionQueued
from duologue.protocol.errors import error_body, refused
from duologue.protocol.events import ErrorBody, ErrorEvent, Event
from duologue.sessions.port import Attachment, Batch, Delivery, Joined
from duologue.sessions.stand_ins.stand_in import MAX_WAITING_ERRORS
from tests.fakes.clock import FakeClock


class FakeSession:
    """What a caller gets in the end."""

    id = "sess_1"

    def __init__(self) -> None:
        self.said: list[Command] = []
        self.attached: list[Attachment] = []
        self.closed = ""

    def attach(self, attachment: Attachment) -> None:
        self.attached.append(attachment)

    def detach(self, attachment: Attachment) -> None:
        self.attached.remove(attachment)

    def offer(self, command: Command) -> None:
        self.said.append(command)

    def reject(self, error: ErrorBody) -> None:
        raise AssertionError(error)

    def played(self, item_id: str, played_ms: int) -> None:
        raise AssertionError("nothing was said")

    def pull(self, max_bytes: int) -> Batch:
        return Batch([], False)

    def close(self, reason: str) -> None:
        self.closed = reason


class Line:
    """The connection of one who waits."""

    def __init__(self, session: QueuedSession) -> None:
        self.session = session
        self.ended: str | None = None
        session.attach(self)

    def on_output(self) -> None:
        """It reads when the test does."""

    def on_end(self, reason: str) -> None:
        self.ended = reason

    def on_let_go(self, reason: str, last_words: Sequence[Delivery]) -> None:
        raise AssertionError("nobody takes over who has no session")

    def read(self) -> list[Event]:
        return [delivery.event for delivery in self.session.pull(1000).deliveries]


class House:
    """A queue, and a place that becomes free when a test says so."""

    def __init__(self) -> None:
        self.queue = CallQueue(3)
        self.session = FakeSession()
        self.refusal: Exception | None = CapacityError("full", retry_after_s=1.0)
        self.looks = 0
        self.clock = FakeClock()
        self.wheel = TimerWheel(self.clock.call_at)

    def join(self, timeout_s: float = 10.0) -> QueuedSession:
        """One that waits, whose connection is yet to come."""

        def open_now() -> Joined:
            self.looks += 1
            if self.refusal is not None:
                raise self.refusal
            return self.session

        session = QueuedSession(self.queue, open_now, self.clock, self.wheel, timeout_s)
        self.queue.join(session)
        return session

    def wait(self, timeout_s: float = 10.0) -> Line:
        return Line(self.join(timeout_s))

    def look(self) -> None:
        """Let the next one look once."""
        self.clock.advance(LOOK_S - 0.01)


def test_only_the_latest_position_is_told_and_only_the_next_one_looks() -> None:
    house = House()
    first, second = house.wait(), house.wait()
    third = house.wait()
    house.look()
    assert house.looks == 1
    first.session.close("")
    second.session.close("")
    assert third.read() == [SessionQueued(position=1, waiting=1)]
    assert third.read() == []
    house.look()
    assert house.looks == 2


def test_who_has_its_turn_becomes_the_session_and_is_listened_to_again() -> None:
    house = House()
    line = house.wait()
    line.session.offer(CommitAudio())
    house.look()
    assert house.session.attached == []
    house.refusal = None
    house.look()
    assert house.session.attached == [line]
    assert house.session.said == [CommitAudio()]
    line.session.offer(ClearAudio())
    assert house.session.said == [CommitAudio(), ClearAudio()]
    assert (line.session.id, len(house.queue), line.ended) == ("sess_1", 0, None)
    line.session.detach(line)
    assert house.session.attached == []
    assert len(house.wheel) == 0


def test_sound_and_too_many_words_are_refused() -> None:
    line = House().wait()
    with pytest.raises(ProtocolError, match="once session") as early:
        line.session.offer(AppendAudio(audio=b"12"))
    assert early.value.code == "session_queued"
    for _ in range(MAX_EARLY_COMMANDS):
        line.session.offer(CommitAudio())
    with pytest.raises(ProtocolError, match=f"{MAX_EARLY_COMMANDS} events wait"):
        line.session.offer(CommitAudio())


def test_who_only_makes_mistakes_and_reads_nothing_is_let_go() -> None:
    house = House()
    line = house.wait()
    for _ in range(MAX_WAITING_ERRORS + 1):
        line.session.reject(error_body(refused("no", None)))
    assert line.ended == "client_too_slow"
    assert len(house.queue) == len(house.wheel) == 0


def test_another_reason_than_a_want_of_places_ends_the_waiting() -> None:
    house = House()
    line = house.wait()
    house.refusal = RateLimited("too many", code="too_many_sessions", retry_after_s=1.0)
    house.look()
    assert line.ended == "too_many_sessions"
    (error,) = [event for event in line.read() if isinstance(event, ErrorEvent)]
    assert error.error.code == "too_many_sessions"


def test_who_waits_too_long_is_refused_after_all() -> None:
    house = House()
    first, second = house.wait(timeout_s=20), house.wait(timeout_s=10)
    house.clock.advance(10.1)
    assert (first.ended, second.ended) == (None, "server_full")
    assert isinstance(second.read()[0], ErrorEvent)
    house.clock.advance(10)
    assert first.ended == "server_full"
    assert len(house.queue) == len(house.wheel) == 0


def test_no_place_is_taken_for_one_whose_connection_is_yet_to_come() -> None:
    house = House()
    session = house.join()
    house.refusal = None
    house.clock.advance(1)
    assert house.looks == 0
    line = Line(session)
    house.look()
    assert house.session.attached == [line]


def test_one_who_never_comes_is_forgotten_in_time() -> None:
    house = House()
    house.join(timeout_s=5)
    behind = house.wait()
    house.clock.advance(5.1)
    assert behind.read()[-1] == SessionQueued(position=1, waiting=1)
    house.refusal = None
    house.look()
    assert house.session.attached == [behind]


def test_who_has_left_is_given_no_place() -> None:
    house = House()
    line = house.wait()
    line.session.detach(line)
    house.refusal = None
    house.clock.advance(20)
    assert house.looks == 0
    assert len(house.queue) == len(house.wheel) == 0
