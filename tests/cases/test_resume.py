"""C55, C57, C59, C66: what a call keeps that loses its connection, and how its age ends it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duologue.core.errors import ClientError
from duologue.duplex_plugins.contract import ResponseRequested
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import FormatPatch, PcmuFormat
from duologue.protocol.commands import CommitAudio, CreateItem, CreateResponse
from duologue.protocol.duplex.commands import AcknowledgePlayback, BargeIn, CloseSession
from duologue.protocol.duplex.events import SessionExpired, SessionExpiring, SessionResumed
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import (
    ErrorEvent,
    ItemAdded,
    TranscriptionCompleted,
)
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import AudioDelta, ResponseCreated, ResponseDone
from duologue.protocol.session_config import FunctionTool
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
    TranscriptionPatch,
    TurnDetectionPatch,
)
from duologue.sessions.owners import Owner
from duologue.sessions.settings import SessionSettings
from tests.cases.talk import BY_HAND, DETECTING, READS
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine, FakeRequest
from tests.fakes.plugin import STAGE, FakePlugin

ULAW_100_MS = b"\x80" * 800


class PhoneCall(FakeCall):
    """A call, and what its model was asked."""

    def __init__(self, settings: SessionSettings | None, patch: DuplexPatch) -> None:
        self.plugin = FakePlugin(replace(READS, voices=("alloy", "coral")))
        engine = FakeEngine(pipelines=BY_HAND)
        super().__init__(self.plugin, engine, settings, patch=patch, resumable=True)


def telephone(settings: SessionSettings | None = None) -> PhoneCall:
    """A call with G.711 in, PCM out, a voice, a tool and turns by hand."""
    patch = DuplexPatch(
        instructions="Be kind.",
        tools=(FunctionTool(name="look"),),
        audio=AudioPatch(
            input=AudioInputPatch(
                format=FormatPatch(type="audio/pcmu"),
                turn_detection=None,
                transcription=TranscriptionPatch(),
            ),
            output=AudioOutputPatch(
                format=FormatPatch(type="audio/pcm", rate=24000), voice="coral"
            ),
        ),
    )
    return PhoneCall(settings, patch)


def ask(call: FakeCall, text: str) -> FakeRequest:
    call.send(CreateItem(item=MessageItem(role="user", content=(InputText(text=text),))))
    call.send(CreateResponse())
    return call.engine.of(STAGE)[-1]


def say(call: FakeCall, stage: FakeRequest, text: str, seconds: float, *, whole: bool) -> None:
    call.engine.output(stage.request.id, TextDelta(text))
    call.engine.output(stage.request.id, AudioChunk(b"\x10\x00" * round(24000 * seconds), 24000))
    if whole:
        call.engine.complete(stage.request.id)


def turns(call: FakeCall, count: int) -> None:
    for number in range(count):
        say(call, ask(call, f"question {number}"), f"answer {number}", 0.4, whole=True)
        call.clock.advance(1.0)


def test_c55_formats_config_and_items_stay_and_the_answer_goes_on() -> None:
    call = telephone()
    turns(call, 3)
    before = call.machine.config
    fourth = ask(call, "question 3")
    say(call, fourth, "answer 3", 4.0, whole=False)
    call.clock.advance(0.7)
    call.client.broken = True
    call.clock.advance(1.0)
    heard = call.client.received
    call.lose()
    call.clock.advance(5.0)
    call.resume()
    resumed = call.client.last(SessionResumed)
    assert resumed.session_id == call.session.id
    assert call.machine.config == before
    assert resumed.session.input_audio_format == "g711_ulaw"
    assert [tool.name for tool in resumed.session.tools if isinstance(tool, FunctionTool)] == [
        "look"
    ]
    # An append that does not say what it is, is what it was.
    call.send(AppendAudio(audio=ULAW_100_MS * 5))
    assert call.machine.listening.audio_ms() in range(495, 501)
    assert isinstance(before.input_format, PcmuFormat)
    call.engine.complete(fourth.request.id)
    call.clock.advance(10)
    done = call.client.last(ResponseDone).response
    assert done.status == "completed"
    spoken = [e for e in call.client.of(AudioDelta) if e.response_id == done.id]
    assert sum(len(event.delta) for event in spoken) == 4 * 48_000
    assert heard < call.client.received
    # The next turn sees all before it.
    ask(call, "question 4")
    asked = call.plugin.of(ResponseRequested)[-1]
    said = [(view.role, view.text) for view in asked.conversation]
    before_it = [
        (role, f"{what} {number}")
        for number in range(4)
        for role, what in (("user", "question"), ("assistant", "answer"))
    ]
    assert said == [*before_it, ("user", "question 4")]
    assert (asked.config.voice, asked.config.instructions) == ("coral", "Be kind.")
    assert [function.name for function in asked.config.tools.functions] == ["look"]
    assert call.client.of(ErrorEvent) == []


def test_c55_what_was_not_heard_is_cut_where_the_client_says() -> None:
    call = telephone()
    say(call, ask(call, "a question"), "one two three four", 4.0, whole=True)
    call.clock.advance(0.7)
    call.client.broken = True
    call.clock.advance(1.0)
    call.lose()
    call.clock.advance(5.0)
    call.resume()
    call.send(AcknowledgePlayback(played_ms=700), BargeIn())
    call.clock.advance(5.0)
    item = call.machine.history.items()[-1]
    spoken = call.machine.history.get(item.id).spoken
    assert spoken is not None
    assert spoken.cut_sample == 700 * 24


def refusal(call: FakeCall, token: str, owner: Owner | None = None) -> ClientError:
    with pytest.raises(ClientError) as refused:
        call.manager.claim(call.session.id, token, owner or call.session.owner, 0)
    return refused.value


def test_c57_four_refusals_differ_and_a_stranger_learns_nothing() -> None:
    live, late, closed = telephone(), telephone(), telephone()
    late.lose()
    late.clock.advance(31)
    closed.send(CloseSession())
    known = [
        refusal(live, "wrong"),
        refusal(late, late.client.token),
        refusal(live, live.client.token, Owner("another key")),
        refusal(closed, closed.client.token),
    ]
    codes = [error.code for error in known]
    assert codes == [
        "invalid_resume_token",
        "session_resume_expired",
        "api_key_not_allowed",
        "session_resume_conflict",
    ]
    with pytest.raises(ClientError) as nobody:
        live.manager.claim("sess_nobody", "wrong", live.session.owner, 0)
    seen = {
        (error.code, error.message, error.param)
        for error in (
            nobody.value,
            refusal(live, "wrong"),
            refusal(live, "wrong", Owner("another key")),
            refusal(late, "wrong"),
            refusal(closed, "wrong"),
        )
    }
    assert len(seen) == 1
    # No session is opened silently, and the one that goes on is as before.
    assert [len(call.manager) for call in (live, late, closed)] == [1, 0, 0]
    assert live.client.ended is None
    # A label for each of them.
    outcomes = {name: count.value for name, count in live.metrics.resumes if count.value}
    assert outcomes == {"invalid_resume_token": 4, "api_key_not_allowed": 1}


AGED = SessionSettings(max_duration_s=120, expiry_warning_s=60, expiry_grace_s=30)


def test_c59_the_age_limit_is_announced_and_the_answer_may_finish() -> None:
    call = telephone(AGED)
    call.clock.advance(59)
    assert call.client.of(SessionExpiring) == []
    call.clock.advance(1.1)
    warning = call.client.last(SessionExpiring)
    assert (warning.seconds_left, warning.rollover) == (60, "new_session")
    call.clock.advance(57)
    stage = ask(call, "a long story?")
    say(call, stage, "a long story", 8.0, whole=True)
    # The person talks at the limit, too.
    for _ in range(50):
        call.clock.advance(0.1)
        call.send(AppendAudio(audio=ULAW_100_MS))
    assert call.client.ended is None
    call.send(CommitAudio(), CreateResponse())
    refused = call.client.of(ErrorEvent)[-1].error
    assert refused.code == "session_expired"
    # What was said last is understood first.
    call.transcribe("and then?")
    call.clock.advance(8)
    assert call.client.ended == "session_expired"
    done = call.client.last(ResponseDone).response
    assert done.status == "completed"
    sound = [e for e in call.client.of(AudioDelta) if e.response_id == done.id]
    assert sum(len(event.delta) for event in sound) == 8 * 48_000
    last = call.client.events[-1]
    assert isinstance(last, SessionExpired)
    assert (last.reason, last.rollover) == ("session_expired", "new_session")
    assert len(call.client.of(SessionExpiring)) == 1


def test_c59_an_answer_that_does_not_finish_ends_with_the_grace_period() -> None:
    call = telephone(AGED.model_copy(update={"response_timeout_s": 100.0}))
    call.clock.advance(119)
    say(call, ask(call, "everything?"), "everything", 20.0, whole=False)
    call.clock.advance(30)
    assert call.client.ended is None
    call.clock.advance(2)
    assert call.client.ended == "session_expired"
    assert call.client.last(ResponseDone).response.status == "cancelled"


def test_c59_a_plain_client_hears_of_no_warning() -> None:
    call = FakeCall(FakePlugin(), settings=AGED, patch=SessionPatch())
    call.clock.advance(121)
    assert call.client.of(SessionExpiring) == call.client.of(SessionExpired) == []
    assert call.client.ended == "session_expired"


def test_c66_a_late_transcript_comes_after_the_answer_and_across_a_lost_connection() -> None:
    detected = TurnDetectionPatch(type="server_vad")
    patch = DuplexPatch(
        audio=AudioPatch(
            input=AudioInputPatch(turn_detection=detected, transcription=TranscriptionPatch())
        )
    )
    plugin = FakePlugin(replace(READS, reads_transcripts=False))
    engine = FakeEngine(pipelines=DETECTING)
    call = FakeCall(plugin, engine, patch=patch, resumable=True)
    call.say(20)
    call.hush(40)
    (stage,) = call.engine.of(STAGE)
    say(call, stage, "an answer", 1.0, whole=True)
    call.clock.advance(2)
    assert call.client.last(ResponseDone).response.status == "completed"
    call.client.broken = True
    call.transcribe("a question")
    call.lose()
    call.clock.advance(4)
    call.resume()
    added = [event.item for event in call.client.of(ItemAdded)]
    assert [item.role for item in added if isinstance(item, MessageItem)] == ["user", "assistant"]
    (completed,) = call.client.of(TranscriptionCompleted)
    assert (completed.item_id, completed.transcript) == (added[0].id, "a question")
    assert [item.id for item in call.machine.history.items()] == [item.id for item in added]
    assert len(call.client.of(ResponseCreated)) == 1
