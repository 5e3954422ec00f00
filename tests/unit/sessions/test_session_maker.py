"""The session maker: what a session is to be, and which parts it is made of."""

from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.core.ids import id_maker
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.contract import Capabilities
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.errors import ErrorCode
from duologue.protocol.session_config import SemanticVad, ServerVad, TranscriptionResource
from duologue.protocol.session_patch import AudioOutputPatch, AudioPatch, SessionPatch
from duologue.sessions.manager import recorded_kinds
from duologue.sessions.owners import ANYBODY
from duologue.sessions.recording.taped import TapedMachine
from duologue.sessions.resumption.resumable_session import ResumableSession
from duologue.sessions.session import Session
from duologue.sessions.session_maker import NO_CHANGE, Plan, SessionMaker, default_config
from duologue.sessions.settings import ListeningSettings, SessionSettings
from duologue.sessions.watching.observer import Observation
from duologue.telemetry import LabelSets, Metrics
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import FakePlugin
from tests.fakes.taped_call import MemoryTape


def maker(
    settings: SessionSettings | None = None, first: FakePlugin | None = None, *, taped: bool = False
) -> SessionMaker:
    clock = FakeClock(100.0)
    return SessionMaker(
        FakeEngine(pipelines=("vad", "end_of_turn", "asr")),
        {"first": first or FakePlugin(), "second": FakePlugin()},
        settings or SessionSettings(),
        clock=clock,
        wheel=TimerWheel(clock.call_at),
        new_id=id_maker(),
        observation=Observation(
            metrics=Metrics(LabelSets(plugins=("first", "second"))),
            kinds=recorded_kinds(),
            clock=clock,
            recorded_entries=0,
            keep=lambda _: None,
            tape=MemoryTape(content=False).tape if taped else None,
        ),
        new_token=lambda: "token",
    )


def hears(**without: None) -> SessionSettings:
    return SessionSettings(listening=ListeningSettings(**without))


def made(by: SessionMaker, plan: Plan, *, resumable: bool) -> Session:
    return by.make(
        plan, ANYBODY, lambda *_: None, lambda *_: None, edge_plays=False, resumable=resumable
    )


@pytest.mark.parametrize(
    ("settings", "detection", "detectors"),
    [
        (hears(), SemanticVad(), {"server_vad", "semantic_vad"}),
        (hears(end_of_turn=None), ServerVad(), {"server_vad"}),
        (hears(vad=None), None, set()),
    ],
)
def test_turns_are_detected_as_well_as_there_are_stages_for(
    settings: SessionSettings, detection: object, detectors: set[str]
) -> None:
    plan = maker(settings).plan(None, "realtime", NO_CHANGE)
    assert plan.config.turn_detection == detection
    assert plan.detectors == detectors


def test_a_model_that_decides_about_turns_has_no_detector_and_takes_every_wish() -> None:
    plan = maker(first=FakePlugin(Capabilities(decides_turns=True))).plan(
        None, "realtime", NO_CHANGE
    )
    assert plan.config.turn_detection is None
    assert plan.detectors == {"server_vad", "semantic_vad"}
    assert plan.settings.listening.vad is None


def test_what_it_is_for_may_come_with_the_patch() -> None:
    by = maker()
    plan = by.plan(None, "realtime", SessionPatch(type="transcription"))
    assert plan.config.kind == "transcription"
    assert isinstance(by.preview(plan), TranscriptionResource)


def test_nobody_can_be_transcribed_without_a_recogniser() -> None:
    with pytest.raises(ProtocolError) as refusal:
        maker(hears(asr=None)).plan(None, "transcription", NO_CHANGE)
    assert (refusal.value.code, refusal.value.param) == (ErrorCode.NO_RECOGNISER, "session.type")


@pytest.mark.parametrize(
    ("model", "served", "shown"),
    [(None, "first", "first"), ("second", "second", "second"), ("gpt", "first", "gpt")],
)
def test_a_model_goes_by_the_name_that_was_asked_for(
    model: str | None, served: str, shown: str
) -> None:
    by = maker()
    plan = by.plan(model, "realtime", NO_CHANGE)
    assert (plan.served, plan.model, by.preview(plan).model) == (served, shown, shown)


def test_a_duplex_client_may_name_its_model_in_the_first_message() -> None:
    plan = maker().plan("first", "realtime", DuplexPatch(model="second"))
    assert (plan.served, plan.config.duplex is None) == ("second", False)


def test_a_change_that_is_not_allowed_makes_no_plan() -> None:
    patch = SessionPatch(audio=AudioPatch(output=AudioOutputPatch(voice="nope")))
    with pytest.raises(ProtocolError, match="voice"):
        maker().plan(None, "realtime", patch)


def test_without_detectors_clients_commit_by_hand() -> None:
    assert default_config(frozenset()).turn_detection is None


@pytest.mark.parametrize(
    ("grace_s", "resumable", "outlives"), [(30, True, True), (30, False, False), (0, True, False)]
)
def test_a_session_outlives_its_connection_where_it_may_and_the_settings_let_it(
    grace_s: float, resumable: bool, outlives: bool
) -> None:
    by = maker(SessionSettings(disconnect_grace_s=grace_s))
    session = made(by, by.plan(None, "realtime", NO_CHANGE), resumable=resumable)
    assert isinstance(session, ResumableSession) is outlives
    assert session.machine.lifetime.resumable is outlives


def test_a_call_that_is_recorded_has_a_machine_that_takes_notes() -> None:
    by = maker(taped=True)
    plan = by.plan(None, "realtime", NO_CHANGE)
    assert isinstance(made(by, plan, resumable=False).machine, TapedMachine)
