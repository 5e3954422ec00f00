"""A whole call without sockets: a session, a client that reads it, an engine and time by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from duologue.core.ids import id_maker
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.contract import DuplexPlugin
from duologue.engines.payloads import Transcript, VoiceActivity
from duologue.protocol.commands import AppendAudio, Command
from duologue.protocol.events import ErrorEvent, Event
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.manager import NO_CHANGE, SessionManager, recorded_kinds
from duologue.sessions.observer import Observation
from duologue.sessions.port import Delivery
from duologue.sessions.session import Session
from duologue.sessions.settings import SessionSettings
from duologue.telemetry import Flight, LabelSets, Metrics
from duologue.telemetry.tape import Tape
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine
from tests.fakes.invariants import WireInvariants

E = TypeVar("E", bound=Event)

WINDOW_SAMPLES = 512
"""One detector window: 32 ms at 16 kHz."""


class FakeConnection:
    """An attached client. Reads at once, unless ``reading`` is switched off."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.reading = True
        self.ended: str | None = None
        self.deliveries: list[Delivery] = []
        self.wire = WireInvariants()

    @property
    def events(self) -> list[Event]:
        return [delivery.event for delivery in self.deliveries]

    def on_output(self) -> None:
        if self.reading:
            self.read()

    def on_end(self, reason: str) -> None:
        self.ended = reason
        if self.reading:
            self.read()

    def read(self, max_bytes: int = 16 * 1024) -> None:
        """Take all there is."""
        while True:
            batch = self.session.pull(max_bytes)
            for delivery in batch.deliveries:
                self.wire.see(delivery)
            self.deliveries.extend(batch.deliveries)
            if not batch.more:
                return

    def of(self, kind: type[E]) -> list[E]:
        """All events of a kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def last(self, kind: type[E]) -> E:
        return self.of(kind)[-1]

    def error(self) -> ErrorEvent:
        """The one error so far."""
        (error,) = self.of(ErrorEvent)
        return error


class FakeCall:
    """One session with everything around it.

    ``say`` and ``hush`` are a person: the detector's windows arrive with the audio.
    """

    def __init__(
        self,
        plugin: DuplexPlugin,
        engine: FakeEngine | None = None,
        settings: SessionSettings | None = None,
        *,
        seed: int = 0,
        edge_plays: bool = False,
        patch: SessionPatch = NO_CHANGE,
        tape: Callable[[str], Tape] | None = None,
        labels: LabelSets | None = None,
    ) -> None:
        self.clock = FakeClock(100.0)
        self.flights: list[Flight] = []
        self.metrics = Metrics(labels or LabelSets(plugins=("model",)))
        self.engine = engine or FakeEngine(pipelines=("vad", "end_of_turn", "asr"))
        self.manager = SessionManager(
            self.engine,
            {"model": plugin},
            settings or SessionSettings(),
            clock=self.clock,
            wheel=TimerWheel(self.clock.call_at),
            new_id=id_maker(random.Random(seed)),
            observation=Observation(
                metrics=self.metrics,
                kinds=recorded_kinds(),
                clock=self.clock,
                recorded_entries=256,
                keep=self.flights.append,
                tape=tape,
            ),
        )
        self.session = self.manager.open(None, patch=patch, edge_plays=edge_plays)
        self.machine = self.session.machine
        self.client = FakeConnection(self.session)
        self.session.attach(self.client)

    def send(self, *commands: Command) -> None:
        """Offer commands, one after the other, at the same moment."""
        for command in commands:
            self.session.offer(command)

    def say(self, windows: int, probability: float = 0.95) -> None:
        """Speak for some detector windows, in real time."""
        for _ in range(windows):
            self.clock.advance(WINDOW_SAMPLES / 16000)
            self.send(AppendAudio(audio=b"\x01\x00" * (WINDOW_SAMPLES * 3 // 2)))
            for detector in self.engine.of("vad"):
                end = self.machine.listening.audio.next_sample
                self.engine.output(detector.request.id, VoiceActivity(probability, end))

    def hush(self, windows: int) -> None:
        """Be silent for some detector windows."""
        self.say(windows, 0.01)

    def transcribe(self, text: str) -> None:
        """Answer the latest final decode of every recogniser stream."""
        for stream in self.engine.of("asr"):
            decodes = [item for item in stream.inputs if getattr(item, "kind", "") == "final"]
            if decodes:
                end = decodes[-1].end_sample
                self.engine.output(stream.request.id, Transcript(text, "final", end))
