"""A machine, without a shell around it."""

from __future__ import annotations

import random

from duologue.core.ids import id_maker
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.ports import Ended, Outcome, Output
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.events import (
    ErrorBody,
    ErrorEvent,
    Event,
)
from duologue.protocol.session_config import SessionConfig
from duologue.sessions.effects import Effect, SubmitRequest
from duologue.sessions.inputs import SessionInput
from duologue.sessions.machine import SessionMachine
from duologue.sessions.settings import SessionSettings
from tests.fakes.plugin import FakePlugin

T = 100.0
WALL = 1_700_000_000.0
SPEECH = AppendAudio(audio=b"\x01\x00" * 24000)


class Bench:
    """A machine, without a shell around it."""

    def __init__(
        self, plugin: FakePlugin | None = None, settings: SessionSettings | None = None
    ) -> None:
        self.plugin = plugin or FakePlugin()
        self.machine = SessionMachine(
            "s",
            "a-model",
            self.plugin,
            SessionConfig(turn_detection=None),
            settings or SessionSettings(),
            detectors=frozenset(),
            new_id=id_maker(random.Random(0)),
            now=T,
            wall_time=WALL,
        )
        self.effects: list[Effect] = list(self.machine.open(T))
        self.events: list[Event] = []

    def apply(self, *items: SessionInput, now: float = T) -> list[Event]:
        """Apply inputs; returns the events that may be sent then."""
        for item in items:
            self.effects += self.machine.apply(item, now)
        return self.read(now)

    def read(self, now: float = T) -> list[Event]:
        events, effects = self.machine.pull(now, 1 << 30)
        self.effects += effects
        self.events += events
        return events

    def pass_time(self, now: float) -> list[Event]:
        self.effects += self.machine.on_timer(now)
        return self.read(now)

    def submitted(self) -> SubmitRequest:
        """The last request for the engine."""
        return [effect for effect in self.effects if isinstance(effect, SubmitRequest)][-1]

    def output(self, payload: TextDelta | AudioChunk) -> Output:
        request = self.submitted().request
        return Output(request.id, request.fence, payload)

    def ended(self, outcome: Outcome, code: str = "") -> Ended:
        request = self.submitted().request
        return Ended(request.id, request.fence, outcome, code)


def error(events: list[Event]) -> ErrorBody:
    (event,) = events
    assert isinstance(event, ErrorEvent)
    return event.error
