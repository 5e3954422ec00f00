"""The session manager: opens within the limit, finds, ends."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from duologue.core.errors import CapacityError, PluginError, ProtocolError
from duologue.core.ids import id_maker
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.contract import Capabilities, PluginConfig
from duologue.engines.payloads import AudioChunk
from duologue.engines.ports import Ended
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import UpdateSession
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import SessionCreated, SessionUpdated
from duologue.protocol.response_events import AudioDelta
from duologue.protocol.session_config import (
    SemanticVad,
    ServerVad,
    Transcription,
    TranscriptionResource,
)
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
    TurnDetectionPatch,
)
from duologue.sessions.manager import SessionManager, recorded_kinds
from duologue.sessions.settings import SessionSettings
from duologue.sessions.watching.observer import Observation
from duologue.telemetry import LabelSets, Metrics
from tests.fakes.call import FakeConnection
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import FakePlugin


class Bench:
    def __init__(
        self,
        pipelines: tuple[str, ...] = ("vad", "end_of_turn", "asr"),
        settings: SessionSettings | None = None,
        slots: int = 99,
        plugin: FakePlugin | None = None,
    ) -> None:
        self.clock = FakeClock(100.0)
        self.engine = FakeEngine(pipelines=pipelines)
        self.metrics = Metrics(LabelSets(plugins=("first", "second")))
        self.plugins = {name: plugin or FakePlugin() for name in ("first", "second")}
        self.manager = SessionManager(
            self.engine,
            self.plugins,
            settings or SessionSettings(max_sessions=2),
            clock=self.clock,
            wheel=TimerWheel(self.clock.call_at),
            new_id=id_maker(),
            slots=lambda _pipeline: slots,
            observation=Observation(
                metrics=self.metrics,
                kinds=recorded_kinds(),
                clock=self.clock,
                recorded_entries=0,
                keep=lambda _: None,
            ),
        )

    def greeting(self, model: str | None = None) -> SessionCreated:
        session = self.manager.open(model)
        client = FakeConnection(session)
        session.attach(client)
        return client.last(SessionCreated)


def test_a_session_is_found_until_it_ends() -> None:
    bench = Bench()
    session = bench.manager.open(None)
    assert bench.manager.get(session.id) is session
    session.close("closed")
    assert bench.manager.get(session.id) is None
    assert len(bench.manager) == 0


def test_a_model_that_steps_its_calls_together_is_full_when_its_workers_are() -> None:
    lockstep = FakePlugin(Capabilities(resident="duplex"))
    bench = Bench(settings=SessionSettings(max_sessions=9), slots=2, plugin=lockstep)
    assert bench.manager.max_sessions == 2
    sessions = [bench.manager.open("first"), bench.manager.open("second")]
    with pytest.raises(CapacityError, match="the limit is 2"):
        bench.manager.check_room()
    sessions[0].close("closed")
    bench.manager.check_room()
    bench.manager.open("second")


def test_a_client_gets_the_model_that_it_names() -> None:
    bench = Bench()
    bench.manager.open("second")
    assert bench.plugins["first"].seen == []
    assert bench.plugins["second"].seen != []
    assert bench.manager.models == ["first", "second"]


def test_a_name_that_is_not_ours_means_the_default_and_is_shown_again() -> None:
    bench = Bench()
    assert bench.greeting("gpt-realtime").session.model == "gpt-realtime"
    assert bench.plugins["first"].seen != []


def test_no_name_means_the_default() -> None:
    assert Bench().greeting().session.model == "first"


def test_past_the_limit_nobody_is_let_in_until_somebody_leaves() -> None:
    bench = Bench()
    first = bench.manager.open(None)
    bench.manager.open(None)
    with pytest.raises(CapacityError, match="2 sessions are open, the limit is 2") as refusal:
        bench.manager.open(None)
    assert refusal.value.retry_after_s > 0
    first.close("closed")
    bench.manager.open(None)


def test_a_server_that_goes_down_lets_nobody_in_and_ends_everybody() -> None:
    bench = Bench()
    session = bench.manager.open(None)
    client = FakeConnection(session)
    session.attach(client)
    bench.manager.close_all(ErrorCode.SHUTTING_DOWN)
    assert client.ended == ErrorCode.SHUTTING_DOWN
    assert len(bench.manager) == 0
    with pytest.raises(CapacityError, match="shutting down") as refusal:
        bench.manager.check_room()
    assert refusal.value.code == ErrorCode.SHUTTING_DOWN


def test_a_plugin_that_cannot_open_leaves_no_session_behind() -> None:
    bench = Bench()

    def fail(config: PluginConfig) -> FakePlugin:
        raise PluginError("no")

    bench.plugins["first"].open = fail  # type: ignore[method-assign]
    with pytest.raises(PluginError):
        bench.manager.open(None)
    assert len(bench.manager) == 0
    assert bench.metrics.sessions_active.value == 0


async def test_draining_waits_until_the_last_session_has_ended() -> None:
    bench = Bench()
    sessions = [bench.manager.open(None) for _ in range(2)]
    waiting = asyncio.create_task(bench.manager.wait_empty(60))
    for session in sessions:
        await asyncio.sleep(0)
        assert not waiting.done()
        session.close("closed")
    await waiting


async def test_draining_ends_with_its_time_out() -> None:
    bench = Bench()
    bench.manager.open(None)
    await bench.manager.wait_empty(0.001)
    assert len(bench.manager) == 1


async def test_where_nothing_runs_there_is_nothing_to_wait_for() -> None:
    bench = Bench()
    await bench.manager.wait_empty(60)
    bench.manager.open(None)
    await bench.manager.wait_empty(0)


def test_flight_recorders_know_what_goes_in_and_out_of_a_session() -> None:
    kinds = recorded_kinds()
    for kind in (AppendAudio, AudioChunk, Ended, AudioDelta, SessionCreated):
        assert kinds.kind(kinds.numbers[kind])[1] == kind.__name__


def test_a_session_may_begin_with_a_patch_and_can_be_looked_at_before() -> None:
    bench = Bench()
    patch = SessionPatch(instructions="Be kind.")
    preview = bench.manager.preview("second", patch)
    assert (preview.model, preview.instructions, preview.expires_at) == ("second", "Be kind.", 0)
    assert len(bench.manager) == 0
    session = bench.manager.open("second", patch=patch)
    assert session.machine.config.instructions == "Be kind."
    assert preview.audio.input.turn_detection == session.machine.config.turn_detection


def test_a_patch_that_is_not_allowed_opens_nothing() -> None:
    bench = Bench()
    bad = SessionPatch(audio=AudioPatch(output=AudioOutputPatch(voice="nope")))
    for attempt in (bench.manager.open, bench.manager.preview):
        with pytest.raises(ProtocolError, match="voice"):
            attempt(None, patch=bad)
    assert len(bench.manager) == 0


# What a session is for


HEARS_ITSELF = Capabilities(decides_turns=True)


@pytest.mark.parametrize("kind", [ServerVad(threshold=0.7), SemanticVad(eagerness="low")])
def test_a_model_that_decides_about_turns_takes_every_wish_and_goes_on_deciding(
    kind: ServerVad | SemanticVad,
) -> None:
    bench = Bench()
    bench.plugins["first"] = FakePlugin(HEARS_ITSELF)
    session = bench.manager.open(None)
    client = FakeConnection(session)
    session.attach(client)
    assert client.last(SessionCreated).session.audio.input.turn_detection is None
    patch = msgspec.convert(msgspec.to_builtins(kind), TurnDetectionPatch)
    audio = AudioPatch(input=AudioInputPatch(turn_detection=patch))
    session.offer(UpdateSession(session=SessionPatch(audio=audio)))
    assert client.last(SessionUpdated).session.audio.input.turn_detection == kind
    session.offer(AppendAudio(audio=b"\x00" * 9600))
    assert bench.engine.submitted == []


def test_a_session_for_transcription_has_detectors_whatever_the_model_can_do() -> None:
    bench = Bench()
    bench.plugins["first"] = FakePlugin(HEARS_ITSELF)
    session = bench.manager.open(None, "transcription")
    client = FakeConnection(session)
    session.attach(client)
    shown = client.last(SessionCreated).session
    assert isinstance(shown, TranscriptionResource)
    assert shown.audio.input.turn_detection == SemanticVad()
    assert shown.audio.input.transcription == Transcription()
    session.offer(AppendAudio(audio=b"\x00" * 9600))
    assert [request.pipeline for request in bench.engine.submitted] == ["vad"]


def test_without_a_recogniser_no_session_for_transcription_is_opened() -> None:
    bench = Bench(("vad",))
    with pytest.raises(ProtocolError) as refusal:
        bench.manager.open(None, "transcription")
    assert (refusal.value.code, refusal.value.param) == (ErrorCode.NO_RECOGNISER, "session.type")
    assert len(bench.manager) == 0


def test_a_place_may_be_kept_for_a_session_that_is_yet_to_come() -> None:
    bench = Bench()
    bench.manager.open(None)
    bench.manager.keep_place()
    for attempt in (bench.manager.check_room, bench.manager.keep_place):
        with pytest.raises(CapacityError):
            attempt()
    bench.manager.give_up_place()
    bench.manager.open(None)


def test_a_patch_of_the_duplex_dialect_makes_a_session_of_its_own() -> None:
    bench = Bench()
    session = bench.manager.open("first", patch=DuplexPatch(model="second"))
    assert session.machine.model == "second"
    assert session.machine.config.duplex is not None
    assert bench.manager.open("first").machine.config.duplex is None
