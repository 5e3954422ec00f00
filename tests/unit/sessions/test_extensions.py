from __future__ import annotations

from typing import Any

from duologue.duplex_plugins.contract import TurnKind
from duologue.engines.payloads import AudioChunk
from duologue.protocol.commands import CreateResponse
from duologue.protocol.duplex.events import DuplexEvent, OverlapDecided, TurnEvent
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import SpeechStarted
from duologue.protocol.response_events import ResponseDone
from duologue.sessions.extensions import _TURN_EVENTS
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

TONE = b"\x10\x00" * 2400


def call(**patch: Any) -> FakeCall:
    engine = FakeEngine(pipelines=(STAGE, "vad", "end_of_turn", "asr"))
    made = FakeCall(FakePlugin(), engine, patch=DuplexPatch(**patch))
    made.hush(4)
    return made


def answer(made: FakeCall, *, audible: bool = True) -> None:
    made.send(CreateResponse())
    if audible:
        (stage,) = made.engine.of(STAGE)
        made.engine.output(stage.request.id, AudioChunk(TONE * 40, 24000))
        made.hush(4)


def turns(made: FakeCall) -> list[tuple[str, str]]:
    return [(event.event, event.turn_state) for event in made.client.of(TurnEvent)]


def decisions(made: FakeCall) -> list[tuple[str, str, str]]:
    return [(e.policy, e.action, e.reason) for e in made.client.of(OverlapDecided)]


def test_every_change_of_the_floor_has_a_name() -> None:
    assert set(_TURN_EVENTS) == set(TurnKind)


def test_the_floor_is_followed_from_turn_to_turn() -> None:
    made = call()
    made.say(20)
    made.hush(5)
    made.say(5)
    made.hush(80)
    assert turns(made)[:3] == [
        ("user_started", "user_speaking"),
        ("user_pausing", "user_speaking"),
        ("user_resumed", "user_speaking"),
    ]
    assert turns(made)[-1] == ("user_committed", "idle")


def test_speech_over_an_answer_is_decided_before_it_is_told() -> None:
    made = call()
    answer(made)
    made.say(20)
    assert decisions(made) == [("barge_in_on_speech", "barge_in", "speech")]
    kinds = [type(event) for event in made.client.events]
    assert kinds.index(OverlapDecided) < kinds.index(SpeechStarted) < kinds.index(ResponseDone)
    (decided,) = made.client.of(OverlapDecided)
    assert (decided.epoch, made.client.of(TurnEvent)[0].epoch) == (0, 1)
    assert decided.metadata.overlap_speech_ms >= 350


def test_an_answer_that_nobody_heard_is_withdrawn() -> None:
    made = call()
    answer(made, audible=False)
    made.say(5)
    assert decisions(made) == [("barge_in_on_speech", "barge_in", "unheard_answer")]


def test_with_listen_only_both_talk() -> None:
    made = call(overlap_policy="listen_only")
    answer(made)
    made.say(20)
    assert decisions(made) == [("listen_only", "listen", "policy_listen_only")]
    assert turns(made) == [("user_started", "both_speaking")]
    assert made.client.of(ResponseDone) == []


def test_a_short_acknowledgement_is_none() -> None:
    made = call()
    answer(made)
    made.say(4)
    made.hush(80)
    assert decisions(made) == [("barge_in_on_speech", "drop", "short_ack")]
    assert turns(made) == []


def test_a_plain_session_hears_nothing_of_it() -> None:
    engine = FakeEngine(pipelines=(STAGE, "vad", "end_of_turn", "asr"))
    made = FakeCall(FakePlugin(), engine)
    made.hush(4)
    answer(made)
    made.say(20)
    made.hush(80)
    made.session.close("closed")
    assert not [event for event in made.client.events if isinstance(event, DuplexEvent)]
