"""The parts of a session, made and joined: who knows whom.

This module must not know what the parts do once they are joined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from duologue.core.ids import IdMaker
from duologue.duplex_plugins.contract import Capabilities, DuplexPlugin
from duologue.protocol.response_config import response_config
from duologue.protocol.session_config import SessionConfig
from duologue.sessions.audience import Audience
from duologue.sessions.command_router import CommandRouter
from duologue.sessions.configuration import Configuration
from duologue.sessions.conversation import Conversation
from duologue.sessions.dialect_extras import DialectExtras, extras_of
from duologue.sessions.dialogue.dialogue import Dialogue
from duologue.sessions.dialogue.plugin_host import PluginHost
from duologue.sessions.echo.echo import EchoJudge
from duologue.sessions.extensions import Extensions
from duologue.sessions.hearing.listening import Listening
from duologue.sessions.hearing.person import Person
from duologue.sessions.history.history import History
from duologue.sessions.lifetime import Lifetime
from duologue.sessions.requests import Requests
from duologue.sessions.seeing.sight import Sight
from duologue.sessions.settings import SessionSettings
from duologue.sessions.speaking.pacing import pace_of
from duologue.sessions.speaking.speaking import Speaking, output_limits
from duologue.sessions.speaking.watchdog import Watchdog


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of one session that its machine deals with."""

    requests: Requests
    configuration: Configuration
    history: History
    speaking: Speaking
    listening: Listening
    extensions: Extensions | None
    dialogue: Dialogue
    watchdog: Watchdog
    person: Person
    lifetime: Lifetime
    extras: DialectExtras
    sight: Sight | None
    audience: Audience
    router: CommandRouter


def assembled(
    session_id: str,
    model: str,
    plugin: DuplexPlugin,
    capabilities: Capabilities,
    config: SessionConfig,
    settings: SessionSettings,
    *,
    detectors: frozenset[str],
    new_id: IdMaker,
    now: float,
    wall_time: float,
    edge_plays: bool,
) -> Parts:
    """Make the parts of a session and join them; the arguments are those of ``SessionMachine``.

    Args:
        capabilities: What the model can do in this session.
    """
    requests = Requests(session_id)
    configuration = Configuration(
        session_id, model, config, settings, capabilities, detectors, wall_time
    )
    history = History(settings.max_items, settings.max_conversation_bytes)
    speaking = Speaking(
        history,
        output_limits(settings),
        pace_of(settings, capabilities),
        capabilities.output_rate_hz,
        new_id,
    )
    sight = Sight(settings.frames, history) if capabilities.sees else None
    conversation = Conversation(history, speaking.playback, new_id, sight)
    listening = Listening(
        settings.listening,
        config,
        requests,
        new_id,
        rate_hz=capabilities.input_rate_hz,
        capacity_ms=settings.input_buffer_ms,
        retain=not capabilities.decides_turns,
        transcribe_always=capabilities.reads_transcripts,
        records=capabilities.hears_turns,
        partials_always=capabilities.reads_partials,
    )
    extensions = None
    held_until = now + settings.listening.first_update_hold_s
    if config.duplex is not None:
        # Such a session is opened by its first update, and need not wait for one.
        extensions = Extensions(session_id, speaking, requests.epochs)
        held_until = -math.inf
    dialogue = Dialogue(
        PluginHost(plugin, configuration.of_plugin(), requests),
        speaking,
        history,
        requests,
        new_id,
        response_config(config),
        settings.max_out_of_band_responses,
        extensions,
        muted=config.kind == "transcription",
        held_until=held_until,
    )
    watchdog = Watchdog(
        speaking,
        settings.response_timeout_s,
        settings.inaudible_timeout_s,
        patient=capabilities.decides_turns,
    )
    if settings.listening.echo_suppression and settings.listening.vad is not None:
        speaking.echo = EchoJudge(capabilities.output_rate_hz, capabilities.input_rate_hz)
    person = Person(
        config,
        capabilities,
        listening,
        conversation,
        speaking,
        dialogue,
        settings.listening.min_interruption_ms,
        settings.listening.soft_pause_ms,
        now,
        extensions,
    )
    lifetime = Lifetime(settings, now, capabilities.tick_ms, extensions is not None)
    extras = extras_of(
        session_id,
        model,
        config,
        capabilities,
        settings.listening.min_interruption_ms,
        extensions,
        speaking,
        history,
        dialogue,
        person,
        listening.audio,
        lifetime,
        sight,
    )
    router = CommandRouter(
        configuration,
        extras,
        person,
        dialogue,
        speaking,
        conversation,
        history,
        lifetime,
        extensions,
        edge_plays=edge_plays,
    )
    return Parts(
        requests=requests,
        configuration=configuration,
        history=history,
        speaking=speaking,
        listening=listening,
        extensions=extensions,
        dialogue=dialogue,
        watchdog=watchdog,
        person=person,
        lifetime=lifetime,
        extras=extras,
        sight=sight,
        audience=Audience(capabilities.backlog_ms),
        router=router,
    )
