"""C58: many calls at once, and none hears another."""

from __future__ import annotations

import random
from collections.abc import Sequence

from duologue.core.ids import id_maker
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.scripted import ScriptedPlugin, ScriptedSettings
from duologue.engines.payloads import AudioChunk, Payload, SpeakText, SpeechMark, TextDelta
from duologue.protocol.commands import CancelResponse, CreateResponse
from duologue.protocol.response_events import AudioDelta, AudioTranscriptDelta, ResponseDone
from duologue.sessions.manager import SessionManager, recorded_kinds
from duologue.sessions.settings import SessionSettings
from duologue.sessions.watching.observer import Observation
from duologue.telemetry import LabelSets, Metrics
from tests.fakes.call import FakeConnection
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine

CALLS = 20
ROUNDS = 60


def secret(number: int) -> str:
    return f"word{number}"


def speak(payload: Payload) -> Sequence[Payload]:
    """Say the secret word and a level that stands for its tone."""
    assert isinstance(payload, SpeakText)
    level = int(payload.text.removeprefix("word")) + 1
    chunk = level.to_bytes(2, "little") * 2400
    return (
        TextDelta(payload.text),
        AudioChunk(chunk, 24000),
        AudioChunk(chunk, 24000),
        SpeechMark(payload.text_end, 4800),
    )


def test_c58_twenty_calls_with_drops_and_cancels_hear_only_their_own() -> None:
    clock, chance = FakeClock(100.0), random.Random(58)
    engine = FakeEngine({"scripted": speak})
    manager = SessionManager(
        engine,
        {secret(n): ScriptedPlugin(ScriptedSettings(lines=(secret(n),))) for n in range(CALLS)},
        SessionSettings(),
        clock=clock,
        wheel=TimerWheel(clock.call_at),
        new_id=id_maker(chance),
        observation=Observation(
            metrics=Metrics(LabelSets()),
            kinds=recorded_kinds(),
            clock=clock,
            recorded_entries=64,
            keep=lambda flight: crashes.append(flight.reason),
        ),
    )
    crashes: list[str] = []
    heard: list[FakeConnection] = []

    def call(number: int) -> FakeConnection:
        client = FakeConnection(manager.open(secret(number)))
        client.session.attach(client)
        heard.append(client)
        return client

    clients = [call(number) for number in range(CALLS)]
    for _ in range(ROUNDS):
        for number in chance.sample(range(CALLS), CALLS):
            client = clients[number]
            match chance.choice(["ask", "ask", "cancel", "drop", "listen"]):
                case "ask":
                    client.session.offer(CreateResponse())
                case "cancel":
                    client.session.offer(CancelResponse())
                case "drop":
                    client.session.detach(client)
                    clients[number] = call(number)
                case _:
                    pass
            engine.deliver(chance.randrange(4))
        clock.advance(chance.uniform(0, 0.3))
    engine.deliver()
    clock.advance(10)

    assert crashes == []
    assert len(manager) == CALLS
    answered = 0
    for client in heard:
        number = int(client.session.machine.model.removeprefix("word"))
        own = (number + 1).to_bytes(2, "little")
        assert {event.delta for event in client.of(AudioTranscriptDelta)} <= {secret(number)}
        for event in client.of(AudioDelta):
            assert event.delta == own * (len(event.delta) // 2)
        answered += sum(e.response.status == "completed" for e in client.of(ResponseDone))
    assert answered > 5 * CALLS
    assert all(client.wire.open_responses == [] for client in clients)
