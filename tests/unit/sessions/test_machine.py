"""The session machine: inputs and ``now`` in, effects out."""

from __future__ import annotations

import random

import pytest

from duologue.core.errors import PluginError
from duologue.core.ids import id_maker
from duologue.duplex_plugins.contract import (
    Capabilities,
    ConfigChanged,
    Interrupted,
    ItemView,
    ResponseRequested,
    SayText,
    StageEnded,
    StageFailed,
    StageOutput,
    StartStage,
    Tick,
)
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.ports import Ended, Outcome, Output
from duologue.protocol.commands import (
    AppendAudio,
    CancelResponse,
    ClearAudio,
    ClearOutputAudio,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    ResponseParams,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import (
    AudioCleared,
    AudioCommitted,
    ErrorBody,
    ErrorEvent,
    Event,
    ItemAdded,
    ItemDeleted,
    ItemRetrieved,
    ItemTruncated,
    SessionCreated,
    SessionUpdated,
)
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import AudioDelta, ResponseCreated, ResponseDone
from duologue.protocol.session_config import SessionConfig
from duologue.protocol.session_patch import AudioOutputPatch, AudioPatch, SessionPatch
from duologue.sessions.effects import CancelRequest, Effect, EndSession, SubmitRequest
from duologue.sessions.inputs import Rejected, SessionInput
from duologue.sessions.machine import SessionMachine
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

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


# Greeting and configuration


def test_the_client_is_greeted_and_the_plugin_configured_before_anything_else() -> None:
    bench = Bench()
    (greeting,) = bench.read()
    assert isinstance(greeting, SessionCreated)
    assert (greeting.session.id, greeting.session.model) == ("s", "a-model")
    assert greeting.session.expires_at == WALL + 3600
    assert [type(item) for item in bench.plugin.seen] == [ConfigChanged]


def test_an_update_is_applied_confirmed_and_told_to_the_plugin() -> None:
    bench = Bench()
    bench.read()
    (updated,) = bench.apply(UpdateSession(session=SessionPatch(instructions="Sing.")))
    assert isinstance(updated, SessionUpdated)
    assert updated.session.instructions == "Sing."
    assert bench.plugin.of(ConfigChanged)[-1].config.instructions == "Sing."


def test_an_update_that_is_wrong_in_part_changes_nothing() -> None:
    bench = Bench()
    bench.read()
    patch = SessionPatch(
        instructions="Sing.", audio=AudioPatch(output=AudioOutputPatch(voice="nobody"))
    )
    body = error(bench.apply(UpdateSession(event_id="e1", session=patch)))
    assert (body.param, body.event_id) == ("session.audio.output.voice", "e1")
    assert bench.machine.config.instructions == ""
    assert len(bench.plugin.of(ConfigChanged)) == 1


def test_a_response_keeps_the_configuration_it_began_with() -> None:
    bench = Bench()
    bench.apply(CreateResponse(), UpdateSession(session=SessionPatch(instructions="Sing.")))
    bench.apply(CancelResponse(), CreateResponse())
    asked = [request.config.instructions for request in bench.plugin.of(ResponseRequested)]
    assert asked == ["", "Sing."]


# Commands


def test_each_command_of_the_conversation_is_answered() -> None:
    bench = Bench()
    bench.read()
    item = MessageItem(id="i", role="user", content=(InputText(text="hello"),))
    added, _ = bench.apply(CreateItem(item=item))
    assert isinstance(added, ItemAdded)
    assert bench.apply(RetrieveItem(item_id="i")) == [ItemRetrieved(item=item)]
    assert bench.apply(DeleteItem(item_id="i")) == [ItemDeleted(item_id="i")]


def test_audio_is_committed_and_answered() -> None:
    bench = Bench()
    bench.read()
    assert bench.apply(SPEECH, ClearAudio()) == [AudioCleared()]
    events = bench.apply(SPEECH, CommitAudio(), CreateResponse())
    assert isinstance(events[0], AudioCommitted)
    assert isinstance(events[-1], ResponseCreated)


def test_the_clients_cut_is_confirmed_and_changes_the_next_prompt() -> None:
    bench = Bench()
    bench.apply(CreateResponse())
    bench.apply(
        bench.output(TextDelta("one two")), bench.output(AudioChunk(b"\x00\x00" * 48000, 24000))
    )
    bench.apply(bench.ended(Outcome.COMPLETED))
    item_id = bench.machine.history.view()[0].id
    (cut,) = bench.apply(TruncateItem(item_id=item_id, audio_end_ms=1200))
    assert cut == ItemTruncated(item_id=item_id, content_index=0, audio_end_ms=1200)
    assert bench.machine.history.view()[0].text == "one"
    assert bench.plugin.of(Interrupted)[-1].heard == "one"


@pytest.mark.parametrize(
    ("command", "code", "param"),
    [
        (CancelResponse(event_id="e1"), "response_cancel_not_active", None),
        (
            CancelResponse(event_id="e1", response_id="x"),
            "response_cancel_not_active",
            "response_id",
        ),
        (CommitAudio(event_id="e1"), "input_audio_buffer_commit_empty", None),
        (ClearOutputAudio(event_id="e1"), "unsupported", None),
        (DeleteItem(event_id="e1", item_id="x"), "item_delete_invalid_item_id", "item_id"),
        (
            TruncateItem(event_id="e1", item_id="x", audio_end_ms=1),
            "item_truncate_invalid_item_id",
            "item_id",
        ),
        (
            CreateResponse(event_id="e1", response=ResponseParams(max_output_tokens=0)),
            "invalid_value",
            "response.max_output_tokens",
        ),
    ],
)
def test_a_mistake_is_one_error_and_nothing_else(
    command: Command, code: str, param: str | None
) -> None:
    bench = Bench()
    bench.read()
    body = error(bench.apply(command))
    assert (body.code, body.param, body.event_id) == (code, param, "e1")
    assert bench.effects == []
    assert bench.machine.ended is None


def test_a_cancel_that_comes_too_late_says_so_in_the_words_that_clients_know() -> None:
    bench = Bench()
    bench.read()
    assert error(bench.apply(CancelResponse())).message.startswith("Cancellation failed")


def test_a_cancel_by_name_stops_that_response() -> None:
    bench = Bench()
    bench.apply(CreateResponse(response=ResponseParams(conversation="none")), CreateResponse())
    beside, active = bench.machine.speaking.all()
    bench.apply(CancelResponse(response_id=beside.id))
    assert bench.machine.speaking.all() == [active]


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
    assert bench.plugin.of(StageOutput) == [StageOutput(response_id, TextDelta("one"))]
    assert bench.plugin.of(StageEnded) == [StageEnded(response_id)]


def test_a_failed_stage_is_told_with_its_code() -> None:
    bench = Bench()
    bench.apply(CreateResponse())
    events = bench.apply(bench.ended(Outcome.FAILED, "replica_lost"))
    assert bench.plugin.of(StageFailed)[0].code == "replica_lost"
    (done,) = [event for event in events if isinstance(event, ResponseDone)]
    assert done.response.status_details.error.code == "replica_lost"  # type: ignore[union-attr]


def test_output_that_comes_after_the_cancel_goes_nowhere_and_is_counted() -> None:
    bench = Bench()
    bench.apply(CreateResponse())
    late = bench.output(TextDelta("late"))
    bench.apply(CancelResponse())
    assert bench.apply(late, bench.ended(Outcome.CANCELLED)) == []
    assert bench.machine.streams.stale_dropped == 1
    assert bench.plugin.of(StageOutput) == []


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
    bench.plugin.then(StartStage(key="spec", pipeline=STAGE, first=TextDelta("x")))
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
    assert bench.machine.has_output()
    assert bench.machine.next_deadline() == T + 15
    bench.effects += bench.machine.on_timer(T + 15)
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
    assert not bench.machine.has_output()


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
