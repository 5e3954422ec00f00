from __future__ import annotations

from typing import Any, cast

import pytest

from duologue.core.errors import CapacityError, ProtocolError
from duologue.core.mailbox import MailboxFull
from duologue.hosts.messages import CloseChannel, Detach, Misread, OpenChannel, Taken
from duologue.hosts.packing import pack_event, weight
from duologue.hosts.port import Opening
from duologue.hosts.remote_session import REFUSED_AT
from duologue.hosts.settings import TOLD_PARTS, LinkSettings
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import ClearAudio
from duologue.protocol.errors import ErrorCode, error_body
from duologue.protocol.events import AudioCleared, ErrorEvent
from duologue.protocol.response_events import AudioDelta
from duologue.sessions.port import Delivery
from tests.fakes.link import FakeClient, FakeLink, FakeSession, sound

LIMITS = LinkSettings(output_window_bytes=4096, input_window_bytes=4096)


class Scene:
    def __init__(self, *, attached: bool = True) -> None:
        self.link = FakeLink(cast(Any, None), LIMITS)
        self.port = self.link.edge.begin(Opening(model="m"))
        self.client = FakeClient(self.port)
        if attached:
            self.port.attach(self.client)
            self.link.settle()

    @property
    def session(self) -> FakeSession:
        return self.link.host_server.sessions[0]

    @property
    def events(self) -> list[object]:
        return [delivery.event for delivery in self.client.got]


def test_it_is_offered_to_and_pulled_from_like_a_session_that_is_here() -> None:
    scene = Scene()
    assert scene.port.id == "sess_0"
    assert scene.link.host_server.arrivals == [Opening(model="m")]
    scene.port.offer(ClearAudio())
    scene.session.say(AudioCleared(), sound("a"))
    scene.link.settle()
    assert scene.session.said == [ClearAudio()]
    assert scene.client.got == [Delivery(1, AudioCleared()), Delivery(2, sound("a"))]


def test_what_is_no_command_and_what_was_played_travel_too() -> None:
    scene = Scene()
    error = error_body(ProtocolError("what?"))
    scene.port.reject(error)
    scene.port.played("a", 40)
    scene.port.played("a", 60)
    scene.link.settle()
    assert scene.session.rejected == [error]
    assert scene.session.heard == {"a": 60}


def test_what_the_session_refuses_is_answered_by_the_session() -> None:
    scene = Scene()
    scene.session.refuses = MailboxFull("too much")
    scene.port.offer(ClearAudio(event_id="e1"))
    scene.link.settle()
    (error,) = scene.session.rejected
    assert (error.code, error.event_id) == ("rate_limited", "e1")


def test_a_client_that_reads_nothing_is_given_a_window_and_then_the_rest() -> None:
    scene = Scene()
    scene.client.reading = False
    scene.session.say(*[sound("a", b"\x01" * 1000) for _ in range(20)])
    scene.link.settle()
    assert 0 < len(scene.session.pulled) < 6
    for _ in range(10):
        scene.client.read(2000)
        scene.link.settle()
    assert len(scene.client.got) == 20


def test_what_was_taken_is_told_in_parts_of_the_window_not_for_each_message() -> None:
    scene = Scene()
    size = weight(pack_event(sound("a", b"\x01" * 300)))
    told = []
    for _ in range(2 * TOLD_PARTS):
        scene.session.say(sound("a", b"\x01" * 300))
        scene.link.write()
        scene.link.deliver_to_edge()
        told += scene.link.edge.outbox.take()
    per_part = -(-LIMITS.output_window_bytes // TOLD_PARTS // size)
    assert per_part > 1
    assert told == [Taken(1, per_part * size)] * (2 * TOLD_PARTS // per_part)


def test_an_interruption_silences_what_waits_and_keeps_its_numbers() -> None:
    scene = Scene()
    scene.client.reading = False
    scene.session.say(sound("old"), AudioCleared(), sound("beside", response_id="resp_2"))
    scene.link.settle()
    scene.session.silence("", beside=("resp_2",))
    scene.session.say(sound("new"))
    scene.link.settle()
    scene.client.read()
    sounds = [event.delta for event in scene.events if isinstance(event, AudioDelta)]
    assert sounds == [b"", b"\x01\x02", b"\x01\x02"]
    assert [delivery.seq for delivery in scene.client.got] == [1, 2, 3, 4]


def test_an_interruption_overtakes_sound_that_came_just_before_it() -> None:
    scene = Scene()
    scene.session.say(sound("old"))
    scene.link.write()
    scene.session.silence("old")
    scene.link.write()
    scene.link.deliver_to_edge(frames=2)
    assert [cast(AudioDelta, event).delta for event in scene.events] == [b""]


def test_a_client_that_says_much_is_read_no_further_until_it_was_dealt_with() -> None:
    scene = Scene()
    command = AppendAudio(audio=b"\x01" * 3000)
    scene.port.offer(command)
    assert not scene.client.held
    scene.port.offer(command)
    assert scene.client.held
    scene.link.settle()
    assert not scene.client.held
    assert scene.session.said == [command, command]


def test_and_refused_when_it_goes_on_all_the_same() -> None:
    scene = Scene()
    command = AppendAudio(audio=b"\x01" * 4096)
    for _ in range(REFUSED_AT):
        scene.port.offer(command)
    with pytest.raises(MailboxFull):
        scene.port.offer(command)
    scene.link.settle()
    scene.port.offer(ClearAudio())


def test_the_end_comes_behind_the_last_words() -> None:
    scene = Scene()
    scene.client.reading = False
    scene.session.say(*[AudioCleared() for _ in range(200)])
    scene.session.end("closed")
    scene.link.settle()
    assert scene.client.ended == "closed"
    scene.client.read()
    assert len(scene.client.got) == 200
    scene.port.offer(ClearAudio())
    scene.port.reject(error_body(ProtocolError("what?")))
    scene.port.played("a", 1)
    scene.port.detach(scene.client)
    scene.port.close("closed")
    assert not scene.link.edge.outbox.take()
    assert not scene.link.edge.is_busy


def test_a_connection_that_was_replaced_writes_its_last_words_alone() -> None:
    scene = Scene()
    scene.client.reading = False
    scene.session.say(sound("a"))
    scene.session.let_go("stale_lease", [Delivery(0, AudioCleared())])
    scene.link.settle()
    assert scene.client.ended == "stale_lease"
    assert scene.client.words == [Delivery(0, AudioCleared())]
    assert not scene.link.edge.is_busy


def test_a_lost_connection_is_told_and_an_unused_session_closed() -> None:
    scene = Scene()
    scene.port.detach(FakeClient(scene.port))
    assert not scene.link.edge.outbox.take()
    scene.port.detach(scene.client)
    assert scene.link.edge.outbox.take() == [Detach(1)]
    other = Scene(attached=False)
    other.port.close("client_gone")
    assert other.link.edge.outbox.take() == [
        OpenChannel(1, Opening(model="m")),
        CloseChannel(1, "client_gone"),
    ]


def test_a_session_that_is_refused_late_ends_with_the_reason() -> None:
    scene = Scene(attached=False)
    scene.link.host_server.refuses = CapacityError("full", retry_after_s=1.0)
    scene.port.attach(scene.client)
    scene.port.reject(error_body(ProtocolError("what?")))
    scene.link.settle()
    assert scene.client.ended == "server_full"
    (error,) = scene.events
    assert isinstance(error, ErrorEvent)
    assert error.error.code == "server_full"


def test_without_a_link_the_client_hears_that_its_host_is_gone() -> None:
    scene = Scene()
    scene.session.say(AudioCleared())
    scene.link.write()
    scene.link.deliver_to_edge()
    scene.link.edge.lost()
    assert scene.client.ended == ErrorCode.HOST_LOST
    scene.client.read()
    first, error = scene.events
    assert isinstance(first, AudioCleared)
    assert isinstance(error, ErrorEvent)
    assert error.error.code == ErrorCode.HOST_LOST


def test_who_attaches_after_the_end_hears_of_it() -> None:
    scene = Scene(attached=False)
    scene.link.edge.lost()
    scene.port.attach(scene.client)
    assert scene.client.ended == ErrorCode.HOST_LOST
    assert not [m for m in scene.link.edge.outbox.take() if isinstance(m, Misread)]
