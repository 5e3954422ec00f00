"""C58: many calls at once, for ten minutes, and none hears another."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from duologue.core.errors import ClientError
from duologue.core.fence import Fence, Lane
from duologue.core.ids import id_maker
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.scripted import ScriptedPlugin, ScriptedSettings
from duologue.engines.payloads import AudioChunk, Payload, SpeakText, SpeechMark, TextDelta
from duologue.engines.ports import Ended, EngineEvent, Outcome, Output, Request
from duologue.protocol.commands import CancelResponse, CreateResponse
from duologue.protocol.duplex.events import ResyncRequired, SessionResumed
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import ErrorEvent, ResumableSessionCreated
from duologue.protocol.response_events import AudioDelta, AudioTranscriptDelta, ResponseDone
from duologue.sessions.manager import SessionManager, recorded_kinds
from duologue.sessions.owners import ANYBODY
from duologue.sessions.settings import SessionSettings
from duologue.sessions.watching.observer import Observation
from duologue.telemetry import Flight, LabelSets, Metrics
from tests.fakes.call import FakeConnection
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine

CALLS = 20
DURATION_S = 600.0
SAMPLES = 12_000
"""Half a second of speech in each answer."""


def secret(number: int) -> str:
    return f"word{number}"


def tone(number: int) -> bytes:
    """A sample that only this call may hear."""
    return (number + 1).to_bytes(2, "little")


def speak(payload: Payload) -> Sequence[Payload]:
    """Say the secret word and a level that stands for its tone."""
    assert isinstance(payload, SpeakText)
    number = int(payload.text.removeprefix("word"))
    chunk = AudioChunk(tone(number) * (SAMPLES // 2), 24_000)
    return (TextDelta(payload.text), chunk, chunk, SpeechMark(payload.text_end, SAMPLES))


class House:
    """A server, and time by hand."""

    def __init__(self) -> None:
        self.clock, self.chance = FakeClock(100.0), random.Random(58)
        self.engine = FakeEngine({"scripted": speak})
        self.crashes: list[Flight] = []
        settings = SessionSettings(max_sessions=2 * CALLS, max_duration_s=3600)
        lines = {secret(n): ScriptedSettings(lines=(secret(n),)) for n in range(CALLS)}
        self.manager = SessionManager(
            self.engine,
            {model: ScriptedPlugin(line) for model, line in lines.items()},
            settings,
            clock=self.clock,
            wheel=TimerWheel(self.clock.call_at),
            new_id=id_maker(self.chance),
            observation=Observation(
                metrics=Metrics(LabelSets()),
                kinds=recorded_kinds(),
                clock=self.clock,
                recorded_entries=64,
                keep=self.crashes.append,
            ),
        )


class Person:
    """Calls, is lost, comes back; checks all that is heard."""

    def __init__(self, house: House, number: int) -> None:
        self.house = house
        self.number = number
        self.outcomes: Counter[str] = Counter()
        self.client = self._call()

    def _call(self) -> FakeConnection:
        patch = DuplexPatch(instructions=secret(self.number))
        session = self.house.manager.open(secret(self.number), patch=patch, resumable=True)
        client = FakeConnection(session)
        session.attach(client)
        return client

    def act(self) -> None:
        what = self.house.chance.choice(
            (
                "ask",
                "ask",
                "ask",
                "cancel",
                "think again",
                "hole",
                "drop",
                "come back",
                "listen",
                "listen",
            )
        )
        client = self.client
        match what:
            case "ask" if not client.gone:
                client.session.offer(CreateResponse())
            case "think again" if not client.gone:
                client.session.offer(CreateResponse())
                client.session.offer(CancelResponse())
            case "cancel" if not client.gone:
                client.session.offer(CancelResponse())
            case "hole":
                client.broken = True  # nothing comes through from now on, and nobody knows
            case "drop" if not client.gone:
                client.gone = True
                client.session.detach(client)
            case "come back" if client.gone or client.broken:
                self.come_back()

    def come_back(self) -> None:
        """Go on with the session, or call again where it did not wait for so long."""
        earlier = self.client
        try:
            ticket = self.house.manager.claim(
                earlier.session.id, earlier.token, ANYBODY, earlier.received
            )
        except ClientError as refused:
            self.outcomes[refused.code] += 1
            self.client = self._call()
            return
        connection = FakeConnection(earlier.session, earlier)
        connection.wire.resumed(earlier.written)
        self.client = connection
        ticket.use(connection)
        self.outcomes["resumed"] += 1

    def check(self) -> None:
        """Nothing of another call has come; what was looked at is forgotten."""
        client, own = self.client, tone(self.number)
        for event in client.events:
            match event:
                case AudioTranscriptDelta(delta=text):
                    assert text == secret(self.number)
                case AudioDelta(delta=pcm):
                    assert pcm == own * (len(pcm) // 2)
                    self.outcomes["heard"] += len(pcm) // 2
                case ResumableSessionCreated(session=session) | SessionResumed(session=session):
                    assert session.instructions == secret(self.number)
                    assert session.model == secret(self.number)
                case ResponseDone(response=response):
                    self.outcomes[response.status] += 1
                case ErrorEvent(error=error):
                    assert error.code in (
                        "conversation_already_has_active_response",
                        "response_cancel_not_active",
                    )
                case ResyncRequired():
                    self.outcomes["gaps"] += 1
        kept = [
            each
            for each in client.deliveries
            if isinstance(each.event, ResumableSessionCreated | SessionResumed)
        ]
        newest = max(client.deliveries, key=lambda each: each.seq, default=None)
        client.deliveries[:] = [*kept[-1:], *([newest] if newest and newest not in kept else [])]


@dataclass
class Speech:
    """One request of ``/v1/audio/speech``, as the engine sees it."""

    number: int
    outputs: list[Payload] = field(default_factory=list)
    outcome: Outcome | None = None

    def on_engine_event(self, event: EngineEvent) -> None:
        match event:
            case Output(payload=payload):
                self.outputs.append(payload)
            case Ended(outcome=outcome):
                self.outcome = outcome


def test_c58_twenty_calls_with_drops_resumes_and_cancels_hear_only_their_own() -> None:
    house = House()
    people = [Person(house, number) for number in range(CALLS)]
    speeches: list[Speech] = []
    ends_at = house.clock.now() + DURATION_S
    while house.clock.now() < ends_at:
        for person in house.chance.sample(people, CALLS):
            person.act()
            house.engine.deliver(house.chance.randrange(4))
        if house.chance.random() < 0.3:
            speech = Speech(house.chance.randrange(CALLS))
            speeches.append(speech)
            text = secret(speech.number)
            request_id = f"http-{len(speeches)}"
            fence = Fence(request_id, Lane("speech"), 0)
            first = SpeakText(text, len(text))
            house.engine.submit(Request(request_id, "scripted", fence, first=first), speech)
        if house.chance.random() < 0.3:
            house.engine.deliver()  # everybody's at the same moment
        house.clock.advance(house.chance.uniform(0, 1.5))
        for person in people:
            person.check()
    house.engine.deliver()
    for person in people:
        person.come_back()
    house.clock.advance(10)
    for person in people:
        person.check()

    assert house.crashes == []
    assert house.engine.unmatched_cancels == 0
    for speech in speeches:
        assert speech.outcome is Outcome.COMPLETED
        own = secret(speech.number)
        assert speech.outputs == list(speak(SpeakText(own, len(own))))
    assert len(speeches) > 100
    for person in people:
        assert person.client.wire.open_responses == []
        assert person.outcomes["completed"] > 20
        assert person.outcomes["resumed"] > 20
        assert person.outcomes["heard"] > 20 * SAMPLES
    together = sum((person.outcomes for person in people), Counter())
    assert together["cancelled"] > CALLS, together
