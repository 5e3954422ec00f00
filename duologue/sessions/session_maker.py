"""The session maker: from what a client asks for to a session, joined with all that it needs.

This module must not know how many sessions there are, nor who may have one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from msgspec import UNSET

from duologue.core.clock import Clock
from duologue.core.errors import ProtocolError
from duologue.core.ids import IdMaker
from duologue.core.wheel import TimerWheel
from duologue.duplex_plugins.contract import Capabilities, DuplexPlugin
from duologue.engines.ports import EnginePort
from duologue.protocol.duplex.session_merge import duplex_default, merge_duplex
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.errors import ErrorCode
from duologue.protocol.session_config import (
    AnySession,
    SemanticVad,
    ServerVad,
    SessionConfig,
    SessionKind,
    TurnDetection,
    to_wire,
)
from duologue.protocol.session_merge import merge
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.dialogue.plugin_config import supported_by
from duologue.sessions.history.inheritance import Inheritance
from duologue.sessions.inbox import Inbox
from duologue.sessions.machine import SessionMachine
from duologue.sessions.owners import Owner
from duologue.sessions.recording.taped import TapedMachine
from duologue.sessions.resumption.lease import TokenMaker
from duologue.sessions.resumption.resumable_session import ResumableSession
from duologue.sessions.resumption.resumption import ResumeTerms, Resumption
from duologue.sessions.session import OnClosed, OnUnfinished, Session, Surroundings
from duologue.sessions.settings import ListeningSettings, SessionSettings, undetected
from duologue.sessions.watching.look import unplayed_s
from duologue.sessions.watching.observer import Observation, SessionObserver
from duologue.sessions.watching.traced import TracedObserver, watched

NO_CHANGE = SessionPatch()
NOT_BEGUN = 0
"""``expires_at`` of a session that nobody has opened yet."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a session is to be.

    Args:
        served: The model, by its name among ours.
        model: The name that the client asked for.
        config: What is in force at its start.
        detectors: Kinds of turn detection that it may ask for.
        settings: Its limits and manners, and who hears it.
    """

    served: str
    plugin: DuplexPlugin
    model: str
    config: SessionConfig
    detectors: frozenset[str]
    settings: SessionSettings

    @property
    def asks(self) -> str:
        """The model that it asks for answers; a transcription asks none."""
        return "" if self.config.kind == "transcription" else self.served


class SessionMaker:
    """Makes sessions.

    Args:
        plugins: By the name of the model that clients ask for; the first is the default.
        settings: Limits and manners of sessions; of stages, only those that the engine has.
    """

    def __init__(
        self,
        engine: EnginePort,
        plugins: Mapping[str, DuplexPlugin],
        settings: SessionSettings,
        *,
        clock: Clock,
        wheel: TimerWheel,
        new_id: IdMaker,
        observation: Observation,
        new_token: TokenMaker,
    ) -> None:
        self._engine = engine
        self._plugins = plugins
        self._settings = settings
        self._undetected = undetected(settings)
        """The same where the model itself decides about turns. All sessions share these two."""

        self._clock = clock
        self._wheel = wheel
        self._new_id = new_id
        self._new_token = new_token
        self._observation = observation

    @property
    def models(self) -> list[str]:
        """Names of the models that clients can ask for."""
        return list(self._plugins)

    @property
    def resident(self) -> dict[str, str]:
        """For each model, the pipeline of which a session holds a place; "": none."""
        return {name: plugin.capabilities().resident for name, plugin in self._plugins.items()}

    def plan(self, model: str | None, kind: SessionKind, patch: SessionPatch) -> Plan:
        """Return what a session is to be that a client asks for.

        Args:
            model: A name that is not ours means the default model: stock clients send the names of
                their vendor's models.
            kind: What it is for, unless the patch says.
            patch: What is different from the start.

        Raises:
            ClientError: The patch is not allowed, or nobody here can transcribe.
        """
        if isinstance(patch, DuplexPatch) and patch.model is not UNSET:
            model = patch.model
        kind = kind if patch.type is UNSET else patch.type
        served = self._served(model)
        plugin = self._plugins[served]
        settings = self._settings
        capabilities = plugin.capabilities()
        detectors = _detectors(settings.listening)
        config = default_config(detectors, kind)
        if kind == "transcription":
            if settings.listening.asr is None:
                raise ProtocolError(
                    "a transcription session needs a recogniser, and this server has none",
                    code=ErrorCode.NO_RECOGNISER,
                    param="session.type",
                )
            # What the model can do does not matter: it is not asked.
            capabilities = Capabilities()
        elif capabilities.decides_turns:
            # Stock clients ask for detection unasked; the model goes on deciding all the same.
            detectors = frozenset({"server_vad", "semantic_vad"})
            config = default_config(frozenset(), kind)
            settings = self._undetected
        supported = supported_by(capabilities, detectors)
        if isinstance(patch, DuplexPatch):
            config = merge_duplex(duplex_default(config), patch, supported)
        elif patch is not NO_CHANGE or kind == "transcription":
            config = merge(config, patch, supported)
        return Plan(served, plugin, model or served, config, detectors, settings)

    def plan_heir(self, inherited: Inheritance) -> Plan:
        """Return what the session is to be that goes on with a conversation."""
        plan = self.plan(inherited.model, inherited.config.kind, NO_CHANGE)
        return Plan(
            plan.served,
            plan.plugin,
            inherited.model,
            inherited.config,
            plan.detectors,
            plan.settings,
        )

    def preview(self, plan: Plan) -> AnySession:
        """Return how a client would be shown such a session."""
        return to_wire(plan.config, self._new_id("sess"), plan.model, NOT_BEGUN)

    def make(
        self,
        plan: Plan,
        owner: Owner,
        on_closed: OnClosed,
        on_unfinished: OnUnfinished,
        *,
        edge_plays: bool,
        resumable: bool,
        inherited: Inheritance | None = None,
    ) -> Session:
        """Make a session. Where calls are recorded or traced, others stand in for three parts.

        ``TapedMachine`` for the machine; ``TracedObserver`` for the observer, and then, by
        ``watched``, ``WatchedEngine`` before the engine. Each adds notes and calls its base.

        Args:
            resumable: It may outlive its connection, where the settings let any.
        """
        settings = plan.settings
        machine = self._machine(plan, edge_plays=edge_plays)
        observer = self._observer(plan, machine)
        around = Surroundings(
            watched(self._engine, observer),
            self._clock,
            self._wheel,
            observer,
            Inbox(settings.mailbox_size, settings.input_backlog_bytes),
            on_closed,
            on_unfinished,
            owner,
        )
        if not resumable or not settings.disconnect_grace_s:
            return Session(machine, around)
        terms = ResumeTerms(
            settings.disconnect_grace_s, settings.output_buffer_bytes, self._new_token
        )
        acknowledges = plan.config.duplex is not None
        resumption = Resumption(machine, terms, acknowledges=acknowledges, inherited=inherited)
        return ResumableSession(machine, around, resumption)

    def _machine(self, plan: Plan, *, edge_plays: bool) -> SessionMachine:
        session_id = self._new_id("sess")
        tape = self._observation.tape
        make = (
            SessionMachine if tape is None else partial(TapedMachine, tape(session_id), plan.served)
        )
        return make(
            session_id,
            plan.model,
            plan.plugin,
            plan.config,
            plan.settings,
            detectors=plan.detectors,
            new_id=self._new_id,
            now=self._clock.now(),
            wall_time=self._clock.wall_time(),
            edge_plays=edge_plays,
        )

    def _observer(self, plan: Plan, machine: SessionMachine) -> SessionObserver:
        trace = self._observation.trace
        observe = SessionObserver if trace is None else partial(TracedObserver, trace)
        return observe(
            machine.id,
            plan.served,
            self._observation,
            machine.listening.audio_ms,
            machine.listening.onset_ms,
            partial(unplayed_s, machine.speaking),
            machine.listening.audio.rate_hz,
        )

    def _served(self, model: str | None) -> str:
        """The model that a client gets, by its name among ours."""
        return model if model is not None and model in self._plugins else next(iter(self._plugins))


def default_config(detectors: frozenset[str], kind: SessionKind = "realtime") -> SessionConfig:
    """Return what is in force before the client says anything."""
    detection: TurnDetection | None = None
    if "semantic_vad" in detectors:
        detection = SemanticVad()
    elif "server_vad" in detectors:
        detection = ServerVad()
    return SessionConfig(kind=kind, turn_detection=detection)


def _detectors(available: ListeningSettings) -> frozenset[str]:
    if available.vad is None:
        return frozenset()
    if available.end_of_turn is None:
        return frozenset({"server_vad"})
    return frozenset({"server_vad", "semantic_vad"})
