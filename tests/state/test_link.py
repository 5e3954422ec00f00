"""The state of a link, whatever the order of events: nothing lost, doubled, or heard too late."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from duologue.hosts.port import Opening
from duologue.hosts.settings import LinkSettings
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.events import AudioCleared
from duologue.protocol.response_events import AudioDelta
from tests.fakes.link import FakeClient, FakeLink, FakeSession, sound

LIMITS = LinkSettings(output_window_bytes=4096, input_window_bytes=4096)
MAX_EVENT_BYTES = 3200
NO_TASKS = cast(Any, None)
"""Nothing here takes time."""


class LinkModel(RuleBasedStateMachine):
    """One session and its client, at two ends of a link."""

    def __init__(self) -> None:
        super().__init__()
        self.link = FakeLink(NO_TASKS, LIMITS)
        port = self.link.edge.begin(Opening())
        self.port = port
        self.client = FakeClient(port)
        port.attach(self.client)
        self.link.settle()
        self.session: FakeSession = self.link.host_server.sessions[0]
        self.offered: list[AppendAudio] = []
        self.silent: dict[str, int] = {}
        """Items of which the interruption has reached the edge, and how much was there by then."""

        self.ended = False
        self.items = 0

    @precondition(lambda self: not self.ended)
    @rule(size=st.integers(1, 3000))
    def the_model_speaks(self, size: int) -> None:
        self.session.say(sound(f"item_{self.items}", b"\x01" * size))

    @precondition(lambda self: not self.ended)
    @rule()
    def something_happens(self) -> None:
        self.session.say(AudioCleared())

    @precondition(lambda self: not self.ended)
    @rule()
    def the_person_interrupts(self) -> None:
        self.session.silence(f"item_{self.items}")
        self.link.write()
        self.silent[f"item_{self.items}"] = -1
        self.items += 1

    @rule(size=st.integers(1, 2000))
    def the_client_speaks(self, size: int) -> None:
        if self.client.held:  # its connection is not read
            return
        command = AppendAudio(audio=bytes((len(self.offered) % 256,)) * size)
        self.port.offer(command)
        if not self.ended:
            self.offered.append(command)

    @rule(max_bytes=st.integers(1, 5000))
    def the_client_reads(self, max_bytes: int) -> None:
        self.client.read(max_bytes)

    @rule(reading=st.booleans())
    def the_client_stalls_or_reads_on(self, reading: bool) -> None:
        self.client.reading = reading
        if reading:
            self.client.read()

    @rule()
    def both_write(self) -> None:
        self.link.write()

    @rule(frames=st.integers(1, 4))
    def the_host_reads(self, frames: int) -> None:
        self.link.deliver_to_host(frames)

    @rule(frames=st.integers(1, 4))
    def the_edge_reads(self, frames: int) -> None:
        self.link.deliver_to_edge(frames)
        if not self.link.to_edge:
            for item, place in self.silent.items():
                if place < 0:
                    self.silent[item] = len(self.client.got)

    @rule(writable=st.booleans())
    def the_hosts_socket_is_full_or_not(self, writable: bool) -> None:
        if writable:
            self.link.host.go_on()
        else:
            self.link.host.outbox.writable = False

    @precondition(lambda self: not self.ended)
    @rule()
    def the_session_ends(self) -> None:
        self.ended = True
        self.session.end("closed")

    @invariant()
    def what_leaves_the_session_is_written_in_order_and_once(self) -> None:
        written = [delivery.seq for delivery in self.client.got]
        assert written == self.session.pulled[: len(written)]

    @invariant()
    def what_was_said_arrives_in_order(self) -> None:
        assert self.session.said == self.offered[: len(self.session.said)]

    @invariant()
    def no_sound_is_written_once_its_interruption_is_there(self) -> None:
        for item, place in self.silent.items():
            if place >= 0:
                late = self.client.got[place:]
                assert not any(
                    isinstance(d.event, AudioDelta) and d.event.item_id == item and d.event.delta
                    for d in late
                )

    @invariant()
    def the_edge_holds_no_more_than_its_window(self) -> None:
        if not self.ended:
            held = sum(size for _, size in self.port._waiting)
            assert held <= LIMITS.output_window_bytes + MAX_EVENT_BYTES

    def teardown(self) -> None:
        """In the end all is there: every number that left the session, all that was said."""
        self.link.host.go_on()
        self.client.reading = True
        for _ in range(self.session.seq + 2):
            self.link.settle()
            self.client.read()
        assert not self.session.waiting
        assert [delivery.seq for delivery in self.client.got] == self.session.pulled
        assert not self.port._waiting
        if self.ended:
            assert self.client.ended == "closed"
            assert not self.link.edge.is_busy
            assert not self.link.host.is_busy
        else:
            assert self.session.said == self.offered
            assert not self.client.held


TestLink = LinkModel.TestCase
TestLink.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
