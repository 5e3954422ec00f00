"""A whole call without sockets: a session, a client that reads it, an engine and time by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from duologue.core.ids import id_maker
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.contract import DuplexPlugin
from duologue.engines.payloads import Transcript, VoiceActivity
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import Command
from duologue.protocol.duplex.events import SessionResumed
from duologue.protocol.events import ErrorEvent, Event, ResumableSessionCreated
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.manager import NO_CHANGE, SessionManager, recorded_kinds
from duologue.sessions.owners import ANYBODY, Owner
from duologue.sessions.port import Delivery
from duologue.sessions.session import Session
from duologue.sessions.settings import SessionSettings
from duologue.sessions.watching.observer import Observation
from duologue.telemetry import Flight, LabelSets, Metrics
from duologue.telemetry.tape import Tape
from duologue.telemetry.turns import TraceTurn
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine
from tests.fakes.invariants import WireInvariants

E = TypeVar("E", bound=Event)

WINDOW_SAMPLES = 512
"""One detector window: 32 ms at 16 kHz."""

SPEECH = b"\x01\x00" * (WINDOW_SAMPLES * 3 // 2)
SILENCE = bytes(len(SPEECH))


class FakeConnection:
    """An attached client. Reads at once, unless ``reading`` is switched off.

    Args:
        earlier: The connection that this one goes on for the same client.
    """

    def __init__(self, session: Session, earlier: FakeConnection | None = None) -> None:
        self.session = session
        self.reading = True
        self.broken = False
        """What is written to it gets lost on the way."""
        self.gone = False
        """It was closed: nothing can be read or said on it."""
        self.ended: str | None = None
        self.last_words: list[Event] = []
        self.written = 0 if earlier is None else earlier.written
        """Number of the latest event that was written, lost or not."""
        self.deliveries: list[Delivery] = [] if earlier is None else earlier.deliveries
        self.wire = WireInvariants() if earlier is None else earlier.wire

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

    def on_let_go(self, reason: str, last_words: Sequence[Delivery]) -> None:
        self.ended = reason
        self.gone = True
        self.last_words = [delivery.event for delivery in last_words]

    def read(self, max_bytes: int = 16 * 1024) -> None:
        """Take all there is."""
        while not self.gone:
            batch = self.session.pull(max_bytes)
            for delivery in batch.deliveries:
                self.written = max(self.written, delivery.seq)
                if not self.broken:
                    self.wire.see(delivery)
            if not self.broken:
                self.deliveries.extend(batch.deliveries)
            if not batch.more:
                return

    @property
    def received(self) -> int:
        """Number of the latest event that came through."""
        return max((delivery.seq for delivery in self.deliveries), default=0)

    @property
    def token(self) -> str:
        """The latest token that came through."""
        tokens = [
            event.resume_token
            for event in self.events
            if isinstance(event, ResumableSessionCreated | SessionResumed)
        ]
        return tokens[-1]

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
        resumable: bool = False,
        trace: TraceTurn | None = None,
    ) -> None:
        self.clock = FakeClock(100.0)
        self.wheel = TimerWheel(self.clock.call_at)
        self.flights: list[Flight] = []
        self.metrics = Metrics(labels or LabelSets(plugins=("model",)))
        self.engine = engine or FakeEngine(pipelines=("vad", "end_of_turn", "asr"))
        self.manager = SessionManager(
            self.engine,
            {"model": plugin},
            settings or SessionSettings(),
            clock=self.clock,
            wheel=self.wheel,
            new_id=id_maker(random.Random(seed)),
            observation=Observation(
                metrics=self.metrics,
                kinds=recorded_kinds(),
                clock=self.clock,
                recorded_entries=256,
                keep=self.flights.append,
                tape=tape,
                trace=trace,
            ),
        )
        self.session = self.manager.open(
            None, patch=patch, edge_plays=edge_plays, resumable=resumable
        )
        self.machine = self.session.machine
        self.client = FakeConnection(self.session)
        self.session.attach(self.client)

    def send(self, *commands: Command) -> None:
        """Offer commands, one after the other, at the same moment."""
        for command in () if self.client.gone else commands:
            self.session.offer(command)

    def resume(self, received: int | None = None, owner: Owner = ANYBODY) -> FakeConnection:
        """Go on with the session on another connection.

        Args:
            received: What the client says that it has; all that came through.
        """
        earlier = self.client
        connection = FakeConnection(self.session, earlier)
        number = earlier.received if received is None else received
        ticket = self.manager.claim(self.session.id, earlier.token, owner, number)
        connection.wire.resumed(earlier.written)
        self.client = connection
        ticket.use(connection)
        return connection

    def lose(self) -> None:
        """Let the connection be lost."""
        self.client.gone = True
        self.session.detach(self.client)

    def say(self, windows: int, probability: float = 0.95, pcm: bytes = SPEECH) -> None:
        """Speak for some detector windows, in real time; ``pcm`` is one window at 24 kHz."""
        for _ in range(windows):
            self.clock.advance(WINDOW_SAMPLES / 16000)
            self.send(AppendAudio(audio=pcm))
            for detector in self.engine.of("vad"):
                end = self.machine.listening.audio.next_sample
                self.engine.output(detector.request.id, VoiceActivity(probability, end))

    def hush(self, windows: int) -> None:
        """Be silent for some detector windows."""
        self.say(windows, 0.01, SILENCE)

    def transcribe(self, text: str) -> None:
        """Answer the latest final decode of every recogniser stream."""
        for stream in self.engine.of("asr"):
            decodes = [item for item in stream.inputs if getattr(item, "kind", "") == "final"]
            if decodes:
                end = decodes[-1].end_sample
                self.engine.output(stream.request.id, Transcript(text, "final", end))
