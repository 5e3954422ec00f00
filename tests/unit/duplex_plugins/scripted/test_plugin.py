"""The scripted plugin: lines from a script, through the engine."""

from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError
from duologue.duplex_plugins.contract import (
    EndResponse,
    Interrupted,
    PluginConfig,
    ResponseOutcome,
    ResponseRequested,
    SayAudio,
    SayText,
    StageEnded,
    StageFailed,
    StageOutput,
    StartStage,
)
from duologue.duplex_plugins.scripted import ScriptedPlugin, create
from duologue.engines.payloads import AudioChunk, SpeakText, SpeechMark, TokenUsage


def make_plugin(*lines: str) -> ScriptedPlugin:
    return create({"lines": list(lines), "pipeline": "tones", "credit_ms": 500})


def requested(response_id: str) -> ResponseRequested:
    return ResponseRequested(response_id, (), PluginConfig())


def test_each_answer_is_the_next_line_and_then_they_start_again() -> None:
    plugin = make_plugin("one", "two")
    state = plugin.open(PluginConfig())
    started = [plugin.step(state, requested(f"r{number}"))[1] for number in range(3)]
    said = [effect.first for effect in started if isinstance(effect, StartStage)]
    assert said == [SpeakText("one", 3), SpeakText("two", 3), SpeakText("one", 3)]


def test_an_answer_is_work_of_its_response_and_may_not_run_far_ahead() -> None:
    plugin = make_plugin("one")
    effects = plugin.step(plugin.open(PluginConfig()), requested("r1"))
    assert list(effects) == [
        SayText("r1", "one"),
        StartStage(
            key="r1", pipeline="tones", first=SpeakText("one", 3), response_id="r1", credit=500
        ),
    ]


def test_what_the_stage_makes_is_said_in_its_response() -> None:
    plugin = make_plugin("one", "two")
    state = plugin.open(PluginConfig())
    plugin.step(state, requested("r1"))
    plugin.step(state, requested("r2"))
    mark = SpeechMark(3, 4800)
    outputs = [
        plugin.step(state, StageOutput(key, payload))
        for key, payload in [
            ("r1", AudioChunk(b"\x00\x00", 24000)),
            ("r1", mark),
            ("r1", TokenUsage(1, 1)),
        ]
    ]
    assert [list(effects) for effects in outputs] == [
        [SayAudio("r1", b"\x00\x00")],
        [SayAudio("r1", b"", (mark,))],
        [],
    ]


def test_the_answer_ends_as_its_stage_does() -> None:
    plugin = make_plugin("one")
    state = plugin.open(PluginConfig())
    assert list(plugin.step(state, StageEnded("r1"))) == [EndResponse("r1")]
    assert list(plugin.step(state, StageFailed("r2", "stage_failed"))) == [
        EndResponse("r2", ResponseOutcome.FAILED, "stage_failed")
    ]


def test_an_interruption_needs_no_answer() -> None:
    plugin = make_plugin("one")
    state = plugin.open(PluginConfig())
    plugin.step(state, requested("r1"))
    assert list(plugin.step(state, Interrupted("r1", ""))) == []


def test_it_needs_neither_audio_nor_words() -> None:
    capabilities = make_plugin("one").capabilities()
    assert not capabilities.hears_audio
    assert not capabilities.reads_transcripts


def test_an_option_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(ConfigError, match="plugin scripted"):
        create({"line": "one"})
