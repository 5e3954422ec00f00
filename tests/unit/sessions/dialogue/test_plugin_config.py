"""The client's configuration in the plugin's terms."""

from __future__ import annotations

import pytest

from duologue.duplex_plugins.contract import Capabilities, PluginConfig
from duologue.duplex_plugins.persona import Draws
from duologue.duplex_plugins.retention import Retention
from duologue.engines.payloads import Tools, ToolSpec
from duologue.protocol.commands import ResponseParams
from duologue.protocol.duplex.config import DuplexConfig
from duologue.protocol.response_config import response_config
from duologue.protocol.session_config import (
    CustomVoice,
    FunctionChoice,
    FunctionTool,
    RetentionRatio,
    SessionConfig,
    TokenLimits,
    Truncation,
    Voice,
)
from duologue.sessions.dialogue.plugin_config import plugin_config, supported_by

CAPABILITIES = Capabilities(voices=("heart", "bella"))


def test_a_plugin_is_told_what_it_may_care_about() -> None:
    config = SessionConfig(instructions="Be brief.", speed=1.2, max_output_tokens=50, voice="bella")
    assert plugin_config(config, CAPABILITIES) == PluginConfig(
        instructions="Be brief.", voice="bella", speed=1.2, max_output_tokens=50, audio_out=True
    )


def test_without_a_limit_there_is_none() -> None:
    assert plugin_config(SessionConfig(), CAPABILITIES).max_output_tokens is None


@pytest.mark.parametrize(
    ("voice", "name"),
    [
        ("bella", "bella"),
        (CustomVoice(id="bella"), "bella"),
        ("alloy", "heart"),
        (CustomVoice(id="nobody"), "heart"),
    ],
)
def test_a_name_that_the_model_does_not_know_means_its_first_voice(voice: Voice, name: str) -> None:
    assert plugin_config(SessionConfig(voice=voice), CAPABILITIES).voice == name


def test_the_answer_is_heard_only_where_the_client_wants_it_and_the_model_can() -> None:
    spoken, written = SessionConfig(), SessionConfig(output_modalities=("text",))
    mute = Capabilities(speaks=False)
    assert plugin_config(spoken, CAPABILITIES).audio_out
    assert not plugin_config(written, CAPABILITIES).audio_out
    assert not plugin_config(spoken, mute).audio_out


def test_a_responses_own_configuration_counts_for_it() -> None:
    config = response_config(SessionConfig(), ResponseParams(instructions="Sing."))
    assert plugin_config(config, CAPABILITIES).instructions == "Sing."


def test_a_session_can_be_set_to_the_models_voices_and_to_those_of_stock_clients() -> None:
    supported = supported_by(CAPABILITIES, frozenset({"server_vad"}))
    assert supported.voices is not None
    assert {"heart", "bella", "alloy", "marin"} <= supported.voices
    assert "nobody" not in supported.voices
    assert supported.turn_detection == {"server_vad"}


@pytest.mark.parametrize(
    ("capabilities", "recogniser", "transcribes"),
    [
        (Capabilities(), True, True),
        (Capabilities(), False, False),
        (Capabilities(decides_turns=True), True, False),
    ],
)
def test_a_session_transcribes_where_there_is_a_recogniser_and_audio_is_kept_for_it(
    capabilities: Capabilities, recogniser: bool, transcribes: bool
) -> None:
    supported = supported_by(capabilities, frozenset(), recogniser=recogniser)
    assert supported.transcribes is transcribes


LOOK = FunctionTool(name="look", description="Looks.", parameters={"type": "object"})
GO = FunctionTool(name="go")
SPECS = (ToolSpec("look", "Looks.", '{"type":"object"}'), ToolSpec("go"))


@pytest.mark.parametrize(
    ("config", "tools"),
    [
        (SessionConfig(), Tools()),
        (SessionConfig(tools=(LOOK, GO)), Tools(SPECS)),
        (SessionConfig(tools=(LOOK, GO), tool_choice="none"), Tools(SPECS, "none")),
        (
            SessionConfig(tools=(LOOK, GO), tool_choice=FunctionChoice(name="go")),
            Tools(SPECS, "required", "go"),
        ),
        (
            SessionConfig(tools=(LOOK, GO), parallel_tool_calls=False),
            Tools(SPECS, parallel=False),
        ),
        # What a session once chose must not break it when its tools are others.
        (SessionConfig(tools=(GO,), tool_choice=FunctionChoice(name="look")), Tools(SPECS[1:])),
        (SessionConfig(tool_choice="required"), Tools()),
    ],
)
def test_a_model_is_told_what_it_may_call(config: SessionConfig, tools: Tools) -> None:
    assert plugin_config(config, CAPABILITIES).tools == tools


@pytest.mark.parametrize(
    ("truncation", "retention"),
    [
        ("auto", Retention()),
        ("disabled", Retention(allowed=False)),
        (RetentionRatio(retention_ratio=0.5), Retention(keep=0.5)),
        (
            RetentionRatio(retention_ratio=0.5, token_limits=TokenLimits(post_instructions=900)),
            Retention(keep=0.5, max_tokens=900),
        ),
    ],
)
def test_a_model_is_told_what_becomes_of_a_long_conversation(
    truncation: Truncation, retention: Retention
) -> None:
    config = SessionConfig(truncation=truncation)
    assert plugin_config(config, CAPABILITIES).retention == retention
    assert plugin_config(response_config(config), CAPABILITIES).retention == retention


def test_how_it_draws_is_said_by_the_session_of_a_duplex_client() -> None:
    config = SessionConfig(duplex=DuplexConfig(top_k=40, seed=7))
    assert plugin_config(config, CAPABILITIES).draws == Draws(top_k=40, seed=7)
    assert plugin_config(SessionConfig(), CAPABILITIES).draws == Draws()
    assert plugin_config(response_config(config), CAPABILITIES).draws == Draws()
