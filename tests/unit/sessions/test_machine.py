"""The session machine: inputs and ``now`` in, effects out."""

from __future__ import annotations

import pytest

from duologue.core.errors import PluginError
from duologue.duplex_plugins.contract import (
    AudienceChanged,
    BeginResponse,
    Capabilities,
    ConfigChanged,
    ItemView,
    RequestEnded,
    RequestFailed,
    RequestOutput,
    ResponseRequested,
    SayAudio,
    SayText,
    StartRequest,
    Tick,
)
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.ports import Outcome
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import (
    CancelResponse,
    CommitAudio,
    CreateItem,
    CreateResponse,
    ResponseParams,
)
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import (
    AudioCommitted,
    ErrorBody,
    ErrorEvent,
    SessionCreated,
)
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import AudioDelta, ResponseDone
from duologue.sessions.effects import CancelRequest, EndSession
from duologue.sessions.inputs import Rejected
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin
from tests.unit.sessions.machine_bench import SPEECH, WALL, Bench, T, error

# Greeting


def test_the_client_is_greeted_and_the_plugin_configured_before_anything_else() -> None:
    bench = Bench()
    (greeting,) = bench.read()
    assert isinstance(greeting, SessionCreated)
    assert (greeting.session.id, greeting.session.model) == ("s", "a-model")
    assert greeting.session.expires_at == WALL + 3600
    assert [type(item) for item in bench.plugin.seen] == [ConfigChanged]


def test_a_message_that_is_no_command_is_answered_with_its_error() -> None:
    bench = Bench()
    bench.read()
    body = ErrorBody(type="invalid_request_error", message="no")
    assert error(bench.apply(Rejected(body))) == body


# The engine


def test_outputs_of_the_plugins_stages_are_the_plugins() -> None:
    bench = Bench()
    bench.apply(CreateResponse())
    bench.apply(bench.output(TextDelta("one")), bench.ended(Outcome.COMPLETED))
    response_id = bench.plugin.of(ResponseRequested)[0].response_id
    assert bench.plugin.of(RequestOutput) == [RequestOutput(response_id, TextDelta("one"))]
    assert bench.plugin.of(RequestEnded) == [RequestEnded(response_id)]


def test_a_failed_stage_is_told_with_its_code() -> None:
    bench = Bench()
    bench.apply(CreateResponse())
    events = bench.apply(bench.ended(Outcome.FAILED, "replica_lost"))
    assert bench.plugin.of(RequestFailed)[0].code == "replica_lost"
    (done,) = [event for event in events if isinstance(event, ResponseDone)]
    assert done.response.status_details.error.code == "replica_lost"  # type: ignore[union-attr]


def test_output_that_comes_after_the_cancel_goes_nowhere_and_is_counted() -> None:
    bench = Bench()
    bench.apply(CreateResponse())
    late = bench.output(TextDelta("late"))
    bench.apply(CancelResponse())
    assert bench.apply(late, bench.ended(Outcome.CANCELLED)) == []
    assert bench.machine.requests.stale_dropped == 1
    assert bench.plugin.of(RequestOutput) == []


def test_work_is_cancelled_with_its_response() -> None:
    bench = Bench()
    bench.apply(CreateResponse())
    bench.apply(CancelResponse())
    assert bench.effects[-1] == CancelRequest(bench.submitted().request.id)


def test_a_plugin_that_breaks_its_contract_is_for_the_session_to_deal_with() -> None:
    bench = Bench(FakePlugin(answers=False))
    bench.plugin.then(SayText("nobody", "x"))
    with pytest.raises(PluginError):
        bench.machine.apply(CreateResponse(), T)


def test_what_a_plugin_has_running_that_answers_nobody_is_its_own() -> None:
    bench = Bench(FakePlugin(answers=False))
    bench.plugin.then(StartRequest(key="spec", pipeline=STAGE, first=TextDelta("x")))
    bench.apply(CreateResponse())
    bench.apply(CancelResponse())
    assert not any(isinstance(effect, CancelRequest) for effect in bench.effects)


def test_what_is_too_long_for_the_buffer_is_known_before_it_is_taken_in() -> None:
    bench = Bench(settings=SessionSettings(input_buffer_ms=2000))
    assert bench.machine.judge(SPEECH) is SPEECH
    refused = bench.machine.judge(AppendAudio(event_id="e1", audio=SPEECH.audio * 3))
    assert isinstance(refused, Rejected)
    assert (refused.error.code, refused.error.event_id) == ("input_audio_buffer_full", "e1")
    assert bench.machine.listening.audio_ms() == 0


# Detectors and recognisers


def detecting(plugin: FakePlugin | None = None) -> FakeCall:
    engine = FakeEngine(pipelines=("vad", "end_of_turn", "asr", STAGE))
    return FakeCall(plugin or FakePlugin(Capabilities(reads_transcripts=True)), engine)


def test_detectors_and_recognisers_are_the_persons() -> None:
    call = detecting()
    call.say(10)
    call.hush(5)
    judge = call.engine.only("end_of_turn")
    call.engine.fail(judge.request.id)
    call.engine.fail(call.engine.only("vad").request.id)
    call.engine.fail(call.engine.only("asr").request.id)
    assert call.client.of(ErrorEvent) == []
    call.send(CommitAudio())
    call.transcribe("hello")
    assert call.machine.history.view()[0].text == "hello"


def test_a_client_that_stops_sending_has_a_deadline_too() -> None:
    call = detecting()
    call.say(10)
    now = call.clock.now()
    assert call.machine.next_deadline() == now + 5.0
    call.clock.advance(5.1)
    assert len(call.client.of(AudioCommitted)) == 1


def test_a_full_buffer_is_the_clients_mistake() -> None:
    bench = Bench(settings=SessionSettings(input_buffer_ms=500))
    bench.read()
    body = error(bench.apply(AppendAudio(event_id="e1", audio=SPEECH.audio)))
    assert (body.code, body.event_id) == ("input_audio_buffer_full", "e1")


# Time


def test_an_early_timer_finds_nothing_to_do() -> None:
    bench = Bench()
    bench.read()
    assert bench.pass_time(T + 1) == []
    assert bench.effects == []


def test_a_quiet_session_is_due_when_it_expires() -> None:
    bench = Bench()
    bench.read()
    assert bench.machine.next_deadline() == T + 3600
    bench.pass_time(T + 3600)
    assert bench.effects == [EndSession(ErrorCode.SESSION_EXPIRED)]


def test_the_frame_clock_ticks_at_its_interval_and_catches_up() -> None:
    bench = Bench(FakePlugin(Capabilities(tick_ms=80), answers=False))
    assert bench.machine.next_deadline() == T + 0.08
    bench.pass_time(T + 0.08)
    bench.pass_time(T + 0.32)
    assert bench.plugin.of(Tick) == [Tick(1), Tick(2), Tick(3), Tick(4)]


def test_speech_that_waits_for_playback_is_due_when_its_time_comes() -> None:
    bench = Bench(settings=SessionSettings(send_lead_ms=1000))
    bench.apply(CreateResponse())
    bench.apply(bench.output(AudioChunk(b"\x00\x00" * 48_000, 24000)))
    assert bench.machine.next_deadline() == pytest.approx(T + 0.2)
    (delta,) = bench.pass_time(T + 0.2)
    assert isinstance(delta, AudioDelta)


def test_a_client_that_takes_nothing_is_due_at_the_stall_limit() -> None:
    bench = Bench(settings=SessionSettings(stall_limit_s=15))
    assert bench.machine.speaking.has_output()
    while bench.machine.ended is None:
        now = bench.machine.next_deadline()
        bench.effects += bench.machine.on_timer(now)
    assert now == T + 15
    assert bench.effects == [EndSession(ErrorCode.CLIENT_TOO_SLOW)]


def test_a_client_that_takes_something_has_its_time_again() -> None:
    bench = Bench(settings=SessionSettings(stall_limit_s=15))
    bench.machine.pull(T + 10, 1)
    bench.apply(CommitAudio(), now=T + 20)
    bench.effects += bench.machine.on_timer(T + 24)
    assert bench.machine.ended is None


def test_a_response_from_which_nothing_comes_is_due_at_its_time_out() -> None:
    bench = Bench(settings=SessionSettings(response_timeout_s=20))
    bench.apply(CreateResponse())
    assert bench.machine.next_deadline() == T + 20
    (done,) = [event for event in bench.pass_time(T + 20) if isinstance(event, ResponseDone)]
    assert done.response.status_details.reason == "stage_timeout"  # type: ignore[union-attr]


@pytest.mark.parametrize("offset_s", [n / 7 for n in range(1, 40)])
def test_a_deadline_that_has_come_is_always_acted_on(offset_s: float) -> None:
    bench = Bench(settings=SessionSettings(response_timeout_s=0.1))
    bench.apply(CreateResponse(), now=T + offset_s)
    due = bench.machine.next_deadline()
    bench.pass_time(due)
    assert bench.machine.next_deadline() > due


# The end


def test_the_end_cancels_all_work_and_ends_every_response() -> None:
    bench = Bench()
    bench.apply(CreateResponse(response=ResponseParams(conversation="none")), CreateResponse())
    bench.effects += bench.machine.close("closed", T)
    assert [type(effect) for effect in bench.effects[-3:]] == [
        CancelRequest,
        CancelRequest,
        EndSession,
    ]
    dones = [event for event in bench.read() if isinstance(event, ResponseDone)]
    assert [done.response.status_details.reason for done in dones] == ["closed"] * 2  # type: ignore[union-attr]
    assert not bench.machine.speaking.has_output()


def test_a_session_ends_once_and_for_its_first_reason() -> None:
    bench = Bench()
    bench.effects += bench.machine.close("first", T)
    bench.effects += bench.machine.close("second", T)
    bench.effects += bench.machine.crash("third")
    bench.effects += bench.machine.on_timer(T + 9999)
    assert bench.effects == [EndSession("first")]
    assert bench.machine.ended == "first"


def test_after_the_end_nothing_is_taken() -> None:
    bench = Bench()
    bench.read()
    bench.machine.close("closed", T)
    assert bench.apply(SPEECH, CommitAudio(), CreateResponse()) == []


def test_a_crash_ends_the_session_as_it_is() -> None:
    bench = Bench()
    bench.apply(CreateResponse())
    effects = bench.machine.crash(ErrorCode.SERVER_ERROR)
    assert [type(effect) for effect in effects] == [CancelRequest, EndSession]
    assert bench.read() == []


def test_a_client_that_takes_no_events_ends_its_session() -> None:
    bench = Bench(settings=SessionSettings(output_events=5))
    for _ in range(5):
        bench.effects += bench.machine.apply(CommitAudio(), T)
    assert bench.effects == [EndSession(ErrorCode.CLIENT_TOO_SLOW)]


def test_the_length_of_the_persons_audio_is_known() -> None:
    bench = Bench()
    bench.apply(SPEECH)
    assert bench.machine.listening.audio_ms() == pytest.approx(1000, abs=5)


def test_an_item_of_the_client_is_part_of_the_next_prompt() -> None:
    bench = Bench()
    item = MessageItem(id="i", role="user", content=(InputText(text="hello"),))
    bench.apply(CreateItem(item=item), CreateResponse())
    (request,) = bench.plugin.of(ResponseRequested)
    assert request.conversation == (ItemView(id="i", role="user", text="hello"),)


def test_a_plugin_that_asks_is_told_when_nobody_takes_what_it_says() -> None:
    able = Capabilities(hears_audio=True, decides_turns=True, backlog_ms=480)
    plugin = FakePlugin(able, answers=False)
    bench = Bench(plugin, SessionSettings(send_lead_ms=80, delta_ms=80))
    plugin.then(BeginResponse())
    bench.apply(SPEECH)
    (request,) = plugin.of(ResponseRequested)
    plugin.then(SayAudio(request.response_id, bytes(2 * 24 * 800)))
    bench.machine.apply(SPEECH, T)
    assert plugin.of(AudienceChanged) == [AudienceChanged(False)]
    bench.read(T + 0.3)
    bench.machine.detach(T + 0.3)
    for moment in range(4, 12):
        bench.pass_time(T + moment / 10)
    assert plugin.of(AudienceChanged) == [AudienceChanged(False)]
    bench.machine.reattach(T + 1.2)
    bench.read(T + 1.2)
    assert plugin.of(AudienceChanged)[-1] == AudienceChanged(True)
