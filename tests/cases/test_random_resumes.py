"""C51 and C52: a thousand random lives of a call, and nothing is left of any."""

from __future__ import annotations

import random
import struct

import pytest

from duologue.duplex_plugins.contract import ResponseRequested
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.protocol.append_audio import AppendPlacedAudio
from duologue.protocol.commands import CancelResponse, CreateResponse
from duologue.protocol.duplex.commands import AcknowledgeEvents, BargeIn, CloseSession
from duologue.protocol.duplex.events import ResyncRequired, SessionClosed, SessionResumed
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import ErrorEvent
from duologue.protocol.response_events import AudioDelta, ResponseDone
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

SEQUENCES = 1000
BATCHES = 10
STEPS = 25
SETTINGS = SessionSettings(send_lead_ms=500)
ANSWER = struct.pack("<24000h", *range(-12_000, 12_000))
"""A second in which each sample says where it is."""


class Life:
    """One call, from open to close."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        engine = FakeEngine(pipelines=(STAGE,))
        self.plugin = FakePlugin(credit=2000)
        self.call = FakeCall(self.plugin, engine, SETTINGS, patch=DuplexPatch(), resumable=True)
        self.said = 0
        self.withdrawn: set[str] = set()
        """Responses that were stopped: not all of them is heard."""

    def step(self) -> None:
        self.dice.choice(
            (
                self.answer,
                self.answer,
                self.speak,
                self.wait,
                self.wait,
                self.acknowledge,
                self.drop,
                self.hole,
                self.come_back,
                self.come_back,
                self.cancel,
            )
        )()

    def answer(self) -> None:
        if self.call.machine.speaking.active is not None:
            return
        self.call.send(CreateResponse())
        for stage in self.call.engine.of(STAGE):
            if not stage.cancelled:
                self.call.engine.output(stage.request.id, TextDelta("Numbers."))
                self.call.engine.output(stage.request.id, AudioChunk(ANSWER, 24000))
                self.call.engine.complete(stage.request.id)

    def speak(self) -> None:
        size = self.dice.randint(1, 2000)
        self.call.send(AppendPlacedAudio(audio=bytes(2 * size), start_sample=self.said))
        if not self.call.client.gone:
            self.said += size

    def wait(self) -> None:
        self.call.clock.advance(self.dice.uniform(0, 1.5))

    def acknowledge(self) -> None:
        self.call.send(AcknowledgeEvents(server_event_seq=self.call.client.received))

    def drop(self) -> None:
        self.call.lose()

    def hole(self) -> None:
        self.call.client.broken = True

    def come_back(self) -> None:
        self.call.resume()
        told = self.call.client.last(SessionResumed)
        assert told.next_sample == self.said

    def cancel(self) -> None:
        client = self.call.client
        active = self.call.machine.speaking.active
        if client.gone:
            return
        self.withdrawn.update(asked.response_id for asked in self.plugin.of(ResponseRequested))
        if active is not None:
            self.call.send(CancelResponse())
        self.call.send(BargeIn())

    def end(self) -> None:
        call = self.call
        how = self.dice.choice(("close", "close", "expire", "shut down"))
        if how == "close":
            call.resume()
            call.clock.advance(5)
            call.send(CloseSession())
            assert call.client.of(SessionClosed)
        elif how == "expire":
            call.lose()
            call.clock.advance(31)
        else:
            call.manager.close_all("server_shutting_down")

    def check(self) -> None:
        call = self.call
        client = call.client
        numbers = [delivery.seq for delivery in client.deliveries if delivery.seq]
        assert numbers == sorted(set(numbers))
        assert client.of(ErrorEvent) == client.of(ResyncRequired) == []
        for done in client.of(ResponseDone):
            name = done.response.id
            heard = b"".join(e.delta for e in client.of(AudioDelta) if e.response_id == name)
            if name not in self.withdrawn and done.response.status == "completed":
                assert heard == ANSWER
            else:
                assert len(heard) <= len(ANSWER)
        # Back to the start.
        assert len(call.manager) == 0
        assert call.manager.detached == 0
        assert call.metrics.sessions_active.value == 0
        assert call.metrics.key_sessions["anybody"].value == 0
        tuple(call.manager.note_fills())
        assert call.metrics.journal_bytes.value == 0
        call.client.gone = False
        call.client.read()
        assert call.machine.speaking.buffer.held_bytes == 0
        assert all(stage.cancelled for stage in call.engine.running.values())
        assert call.engine.unmatched_cancels == 0
        assert call.flights == []
        assert len(call.wheel) == 0


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_thousand_random_lives_leave_nothing_behind(batch: int) -> None:
    for seed in range(batch, SEQUENCES, BATCHES):
        life = Life(seed)
        for _ in range(STEPS):
            life.step()
        life.end()
        life.check()
