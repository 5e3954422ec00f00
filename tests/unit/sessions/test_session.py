"""The thin shell around a session machine: one writer, one timer, one connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from duologue.core.errors import CapacityError, EngineError, PluginError
from duologue.core.mailbox import MailboxFull
from duologue.duplex_plugins.contract import (
    AdoptRequest,
    BeginResponse,
    Capabilities,
    FinishRequest,
    PluginEffect,
    PluginInput,
    RequestFailed,
    SayText,
    StartRequest,
    Tick,
)
from duologue.engines.payloads import AudioChunk, Payload, TextDelta
from duologue.engines.ports import Request, Subscriber
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.commands import ClearAudio, CommitAudio, CreateResponse
from duologue.protocol.errors import ErrorCode, error_body
from duologue.protocol.events import (
    AudioCleared,
    AudioCommitted,
    ErrorBody,
    ErrorEvent,
    SessionCreated,
)
from duologue.protocol.response_events import ResponseCreated, ResponseDone
from duologue.sessions.machine import SessionMachine
from duologue.sessions.session import CLIENT_GONE, Session
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall, FakeConnection
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin


def make_call(
    plugin: FakePlugin | None = None,
    engine: FakeEngine | None = None,
    settings: SessionSettings | None = None,
) -> FakeCall:
    return FakeCall(
        plugin or FakePlugin(answers=False),
        engine or FakeEngine(pipelines=(STAGE, "other")),
        settings,
    )


class Impatient:
    """A connection that does as a test says when it is woken."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.woken = 0
        self.kinds: list[type] = []
        self.act: Callable[[], None] = lambda: None

    def on_output(self) -> None:
        self.woken += 1
        self.act()

    def on_end(self, reason: str) -> None:
        pass

    def read(self) -> None:
        batch = self.session.pull(1 << 20)
        self.kinds += [type(delivery.event) for delivery in batch.deliveries]


class Broken:
    """A machine that breaks when it is read from."""

    def __init__(self, machine: SessionMachine) -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> object:
        return getattr(self._machine, name)

    def pull(self, now: float, max_bytes: int) -> object:
        self._machine.pull(now, max_bytes)
        raise ZeroDivisionError


class EagerEngine(FakeEngine):
    """An engine that answers while it is still being asked."""

    answer: Payload = TextDelta("at once")
    times = 1

    def submit(self, request: Request, subscriber: Subscriber) -> None:
        super().submit(request, subscriber)
        for _ in range(self.times):
            self.output(request.id, self.answer)


# The connection


def test_a_connection_gets_what_was_said_before_it_came() -> None:
    call = make_call()
    assert [type(event) for event in call.client.events] == [SessionCreated]


def test_events_are_numbered_without_gaps() -> None:
    call = make_call()
    call.send(ClearAudio(), ClearAudio())
    assert [delivery.seq for delivery in call.client.deliveries] == [1, 2, 3]


def test_a_connection_that_does_not_read_is_woken_once() -> None:
    call = make_call()
    connection = Impatient(call.session)
    call.session.attach(connection)
    call.send(ClearAudio(), ClearAudio())
    assert connection.woken == 1
    assert not call.session.pull(1 << 20).more
    call.send(ClearAudio())
    assert connection.woken == 2


def test_a_connection_that_reads_a_part_is_told_that_there_is_more() -> None:
    call = make_call()
    call.client.reading = False
    call.send(ClearAudio(), ClearAudio())
    batch = call.session.pull(1)
    assert (len(batch.deliveries), batch.more) == (1, True)
    rest = call.session.pull(1)
    assert (len(rest.deliveries), rest.more) == (1, False)


def test_a_new_connection_takes_over_and_the_old_one_cannot_end_the_session() -> None:
    call = make_call()
    new = FakeConnection(call.session)
    old = call.client
    old.reading = False
    call.session.attach(new)
    assert old.ended == ErrorCode.STALE_LEASE
    call.session.detach(old)
    assert len(call.manager) == 1
    call.session.detach(new)
    assert len(call.manager) == 0


def test_a_lost_connection_ends_the_session_and_all_its_work() -> None:
    plugin = FakePlugin()
    call = make_call(plugin)
    call.send(CreateResponse())
    call.session.detach(call.client)
    assert call.machine.ended == CLIENT_GONE
    assert call.engine.only(STAGE).cancelled
    assert len(call.manager) == 0


def test_a_closed_session_says_so_to_its_connection_after_all_that_it_had_to_say() -> None:
    call = make_call(FakePlugin())
    call.send(CreateResponse())
    call.session.close("closed")
    assert call.client.ended == "closed"
    assert call.client.last(ResponseDone).response.status == "cancelled"
    call.session.close("again")
    assert call.client.ended == "closed"


def test_a_closed_session_takes_nothing_more() -> None:
    call = make_call()
    call.session.close("closed")
    call.send(ClearAudio())
    call.clock.advance(10_000)
    assert call.client.of(AudioCleared) == []


def test_a_connection_that_comes_after_the_end_is_told_why() -> None:
    plugin = FakePlugin(answers=False)
    plugin.then(SayText("nobody", "x"))
    call = make_call(plugin)
    assert call.client.ended == ErrorCode.PLUGIN_ERROR
    assert call.client.of(SessionCreated) != []


# One writer


def test_what_comes_in_while_an_input_is_applied_waits_its_turn() -> None:
    plugin = FakePlugin()
    engine = EagerEngine(pipelines=(STAGE,))
    call = make_call(plugin, engine)
    call.send(CreateResponse())
    assert [type(event).__name__ for event in call.client.events][-1] == "AudioTranscriptDelta"
    assert call.client.of(ErrorEvent) == []


def test_inputs_that_waited_are_applied_however_many_there_are() -> None:
    engine = EagerEngine(pipelines=(STAGE,))
    engine.times = 2000
    settings = SessionSettings(mailbox_size=3000, output_events=3000)
    call = make_call(FakePlugin(), engine, settings)
    call.send(CreateResponse())
    assert call.flights == []
    assert len(call.client.deliveries) > 2000


def test_a_full_mailbox_refuses_commands_and_changes_nothing() -> None:
    refused: list[Exception] = []

    def talk_back(item: PluginInput) -> None:
        for _ in range(3):
            try:
                call.session.offer(ClearAudio())
            except MailboxFull as exc:
                refused.append(exc)

    plugin = FakePlugin(answers=False)
    call = make_call(plugin, settings=SessionSettings(mailbox_size=1))
    step = plugin.step
    plugin.step = lambda state, item: (talk_back(item), step(state, item))[1]  # type: ignore[method-assign]
    call.send(CreateResponse())
    assert len(refused) == 2
    assert len(call.client.of(AudioCleared)) == 1


def test_an_engine_that_says_more_than_can_wait_crashes_the_session_and_no_other() -> None:
    engine = EagerEngine(pipelines=(STAGE,))
    engine.times = 5
    call = make_call(FakePlugin(), engine, SessionSettings(mailbox_size=3))
    call.send(CreateResponse())
    assert call.client.ended == ErrorCode.SERVER_ERROR
    assert len(call.flights) == 1


def test_a_rejected_message_is_answered_in_its_turn() -> None:
    call = make_call()
    call.session.reject(ErrorBody(type="invalid_request_error", message="no"))
    assert call.client.error().error.message == "no"


def test_a_connection_that_speaks_while_it_reads_is_heard_after() -> None:
    call = make_call()
    connection = Impatient(call.session)
    call.session.attach(connection)

    def read_and_speak() -> None:
        connection.read()
        connection.act = connection.read
        call.session.offer(CommitAudio())

    connection.act = read_and_speak
    call.send(ClearAudio())
    assert connection.kinds == [AudioCleared, ErrorEvent]


def test_a_rejection_during_an_input_waits_as_commands_do() -> None:
    plugin = FakePlugin(answers=False)
    call = make_call(plugin)
    step = plugin.step
    body = ErrorBody(type="invalid_request_error", message="late")
    plugin.step = lambda state, item: (call.session.reject(body), step(state, item))[1]  # type: ignore[method-assign]
    call.send(CreateResponse())
    kinds = [type(event) for event in call.client.events[1:]]
    assert kinds == [ResponseCreated, ErrorEvent]


# Effects


def test_a_request_that_the_engine_refuses_is_a_stage_that_failed() -> None:
    plugin = FakePlugin(answers=False)
    call = make_call(plugin)
    call.engine.refusals["other"] = CapacityError("full", retry_after_s=1.0)
    plugin.then(StartRequest(key="k", pipeline="other"))
    call.send(CreateResponse())
    assert plugin.of(RequestFailed) == [RequestFailed("k", "server_full")]
    call.engine.refusals["other"] = EngineError("lost", code="replica_lost")
    plugin.then(StartRequest(key="k", pipeline="other"))
    call.send(CommitAudio(), CreateResponse())
    plugin.then(StartRequest(key="l", pipeline="other"))
    call.session.on_timer()
    assert len(plugin.of(RequestFailed)) == 1


def test_effects_reach_the_engine() -> None:
    plugin = FakePlugin(credit=1000)
    call = make_call(plugin)
    call.send(CreateResponse())
    stage = call.engine.only(STAGE)
    plugin.then(FinishRequest(stage.request.fence.lane))
    call.engine.output(stage.request.id, AudioChunk(b"\x00\x00" * 4800, 24000))
    assert stage.input_ended
    assert stage.credit == 1200


# Crashes


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (PluginError("broken"), ErrorCode.PLUGIN_ERROR),
        (ZeroDivisionError(), ErrorCode.SERVER_ERROR),
    ],
)
def test_a_crash_closes_this_session_and_keeps_its_last_seconds(
    fault: Exception, reason: ErrorCode
) -> None:
    plugin = FakePlugin(answers=False)
    call = make_call(plugin)

    def crash(state: FakePlugin, item: PluginInput) -> list[SayText]:
        raise fault

    plugin.step = crash  # type: ignore[assignment]
    call.send(CreateResponse())
    assert call.client.ended == reason
    assert len(call.manager) == 0
    (flight,) = call.flights
    assert flight.reason == type(fault).__name__


@pytest.mark.parametrize(
    "append",
    [AppendAudio(audio=b"\0\0"), AppendPlacedAudio(audio=b"\0\0", start_sample=0)],
)
def test_the_audio_of_a_second_is_one_record_however_it_is_written(append: AppendAudio) -> None:
    plugin = FakePlugin(answers=False)
    call = make_call(plugin)
    for _ in range(20):
        call.send(append)
    call.clock.advance(1.0)
    call.send(append)

    def crash(state: FakePlugin, item: PluginInput) -> list[SayText]:
        raise ZeroDivisionError

    plugin.step = crash  # type: ignore[assignment]
    call.send(CreateResponse())
    (flight,) = call.flights
    assert [entry.size_bytes for entry in flight.entries if entry.kind == "AppendAudio"] == [2, 40]


def test_a_crash_while_reading_returns_what_there_was() -> None:
    call = make_call()
    call.client.reading = False
    call.send(ClearAudio())
    call.session.machine = Broken(call.machine)  # type: ignore[assignment]
    assert call.session.pull(1 << 20).deliveries == []
    assert call.client.ended == ErrorCode.SERVER_ERROR


# Time


def test_time_passes_for_a_session_without_input() -> None:
    plugin = FakePlugin(Capabilities(tick_ms=100), answers=False)
    call = make_call(plugin)
    call.clock.advance(1.05)
    assert [tick.count for tick in plugin.of(Tick)] == list(range(1, 11))


def test_speech_that_waits_for_playback_goes_out_in_time() -> None:
    plugin = FakePlugin()
    call = make_call(plugin, settings=SessionSettings(send_lead_ms=1000))
    call.send(CreateResponse())
    call.engine.output(call.engine.only(STAGE).request.id, AudioChunk(b"\x00\x00" * 96000, 24000))
    sent = len(call.client.deliveries)
    call.clock.advance(2.0)
    assert len(call.client.deliveries) == sent + 10


def test_a_client_that_takes_nothing_is_let_go() -> None:
    call = make_call(settings=SessionSettings(stall_limit_s=15))
    call.client.reading = False
    call.send(ClearAudio())
    call.clock.advance(14.9)
    assert call.client.ended is None
    call.clock.advance(0.2)
    assert call.client.ended == ErrorCode.CLIENT_TOO_SLOW


def test_a_client_is_given_nothing_while_the_loop_stands_still() -> None:
    call = make_call(settings=SessionSettings(stall_limit_s=15))
    call.client.reading = False
    call.send(ClearAudio())
    for _ in range(2):
        call.clock.advance(3.0)
        call.clock.stall(12.0)
    call.clock.advance(0.1)
    assert call.client.ended is None
    call.clock.advance(15.0)
    assert call.client.ended == ErrorCode.CLIENT_TOO_SLOW


def test_a_plugin_may_speak_first() -> None:
    plugin = FakePlugin()
    plugin.then(BeginResponse())
    call = make_call(plugin)
    assert len(call.client.of(ResponseCreated)) == 1


# Long appends

MINUTE = AppendAudio(event_id="e9", audio=bytes(60 * 48_000))


def test_what_follows_a_long_append_waits_for_its_end_and_nobody_waits_for_it() -> None:
    call = make_call()
    call.send(MINUTE, CommitAudio())
    assert call.client.of(AudioCommitted) == []
    call.clock.advance(1.0)
    assert len(call.client.of(AudioCommitted)) == 1
    assert call.client.of(ErrorEvent) == []
    assert call.machine.listening.audio_ms() == pytest.approx(60_000, abs=5)


def test_a_long_append_that_does_not_fit_is_refused_whole_and_once() -> None:
    call = make_call(settings=SessionSettings(input_buffer_ms=30_000))
    call.send(AppendAudio(audio=bytes(48_000)), MINUTE)
    call.clock.advance(1.0)
    error = call.client.error().error
    assert (error.code, error.event_id) == ("input_audio_buffer_full", "e9")
    assert call.machine.listening.audio_ms() <= 1000


def test_a_client_that_says_too_much_behind_a_long_append_is_refused() -> None:
    call = make_call(settings=SessionSettings(mailbox_size=2))
    call.send(MINUTE, ClearAudio())
    with pytest.raises(MailboxFull) as refusal:
        call.send(ClearAudio())
    call.session.reject(error_body(refusal.value))
    assert call.client.error().error.code == "rate_limited"
    call.clock.advance(1.0)
    call.send(ClearAudio())
    assert len(call.client.of(AudioCleared)) == 2


def test_a_rejection_that_finds_no_room_while_an_input_is_applied_is_dropped() -> None:
    plugin = FakePlugin(answers=False)
    call = make_call(plugin, settings=SessionSettings(mailbox_size=1))
    step = plugin.step
    body = ErrorBody(type="invalid_request_error", message="late")

    def reject_twice(state: FakePlugin, item: PluginInput) -> Sequence[PluginEffect]:
        call.session.reject(body)
        call.session.reject(body)
        return step(state, item)

    plugin.step = reject_twice  # type: ignore[method-assign]
    call.send(CreateResponse())
    assert call.client.error().error == body


def test_a_session_that_ends_takes_no_more_of_a_long_append() -> None:
    call = make_call()
    call.send(MINUTE)
    call.clock.advance(0.02)
    call.session.close("closed")
    heard_ms = call.machine.listening.audio_ms()
    call.clock.advance(1.0)
    assert call.machine.listening.audio_ms() == heard_ms < 60_000


def test_work_that_goes_over_to_a_response_gets_its_fence() -> None:
    plugin = FakePlugin(answers=False)
    call = make_call(plugin)
    plugin.then(StartRequest(key="spec", pipeline="other", more_input=True))
    call.send(CreateResponse())
    response_id = call.client.last(ResponseCreated).response.id
    plugin.then(AdoptRequest("spec", response_id))
    call.engine.output(call.engine.only("other").request.id, TextDelta("x"))
    assert call.engine.only("other").request.fence.lane == response_id
