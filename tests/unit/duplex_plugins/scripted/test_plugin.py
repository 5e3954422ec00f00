"""The scripted plugin: lines from a script, through the engine."""

from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError
from duologue.duplex_plugins.contract import (
    CallFunction,
    EndResponse,
    Interrupted,
    ItemView,
    PluginConfig,
    PluginEffect,
    RequestEnded,
    RequestFailed,
    RequestOutput,
    ResponseOutcome,
    ResponseRequested,
    SayAudio,
    SayText,
    StartRequest,
)
from duologue.duplex_plugins.scripted import ScriptedPlugin, create
from duologue.engines.payloads import (
    AudioChunk,
    SpeakText,
    SpeechMark,
    TokenUsage,
    ToolCall,
    Tools,
    ToolSpec,
)


def make_plugin(*lines: str) -> ScriptedPlugin:
    return create({"lines": list(lines), "pipeline": "tones", "credit_ms": 500})


def requested(response_id: str) -> ResponseRequested:
    return ResponseRequested(response_id, (), PluginConfig())


def test_each_answer_is_the_next_line_and_then_they_start_again() -> None:
    plugin = make_plugin("one", "two")
    state = plugin.open(PluginConfig())
    started = [plugin.step(state, requested(f"r{number}"))[1] for number in range(3)]
    said = [effect.first for effect in started if isinstance(effect, StartRequest)]
    assert said == [SpeakText("one", 3), SpeakText("two", 3), SpeakText("one", 3)]


def test_an_answer_is_work_of_its_response_and_may_not_run_far_ahead() -> None:
    plugin = make_plugin("one")
    effects = plugin.step(plugin.open(PluginConfig()), requested("r1"))
    assert list(effects) == [
        SayText("r1", "one"),
        StartRequest(
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
        plugin.step(state, RequestOutput(key, payload))
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
    plugin.step(state, requested("r1"))
    plugin.step(state, requested("r2"))
    assert list(plugin.step(state, RequestEnded("r1"))) == [EndResponse("r1")]
    assert list(plugin.step(state, RequestFailed("r2", "stage_failed"))) == [
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


WEATHER = {"name": "get_weather", "arguments": '{"city":"Paris"}'}
TIMER = {"name": "set_timer", "arguments": '{"minutes":5}'}
OFFERED = PluginConfig(tools=Tools((ToolSpec("get_weather"), ToolSpec("set_timer"))))


def play(
    turn: dict[str, object], config: PluginConfig = OFFERED, *conversation: ItemView
) -> list[PluginEffect]:
    """Let one turn be answered to its end."""
    plugin = create({"turns": [turn]})
    state = plugin.open(config)
    effects = list(plugin.step(state, ResponseRequested("r1", conversation, config)))
    if any(isinstance(effect, StartRequest) for effect in effects):
        effects += plugin.step(state, RequestEnded("r1"))
    return effects


def calls(effects: list[PluginEffect]) -> list[tuple[str, str]]:
    """Name and arguments of each call that was finished, in order."""
    arguments: dict[str, str] = {}
    found: list[tuple[str, str]] = []
    for effect in effects:
        if isinstance(effect, CallFunction):
            arguments[effect.call] = arguments.get(effect.call, "") + effect.arguments
            if effect.done:
                found.append((effect.name, arguments[effect.call]))
    return found


def test_a_turn_may_be_one_call() -> None:
    effects = play({"calls": [WEATHER]})
    assert calls(effects) == [("get_weather", '{"city":"Paris"}')]
    assert [type(effect) for effect in effects] == [CallFunction, CallFunction, EndResponse]


def test_a_turn_may_be_two_calls_at_once() -> None:
    effects = play({"calls": [WEATHER, TIMER]})
    assert calls(effects) == [
        ("get_weather", '{"city":"Paris"}'),
        ("set_timer", '{"minutes":5}'),
    ]


@pytest.mark.parametrize("calls_first", [True, False])
def test_a_turn_may_be_speech_and_a_call(calls_first: bool) -> None:
    effects = play({"line": "One moment.", "calls": [WEATHER], "calls_first": calls_first})
    kinds = [type(effect) for effect in effects]
    speech = [SayText, StartRequest]
    call = [CallFunction, CallFunction]
    assert kinds == [*(call + speech if calls_first else speech + call), EndResponse]


def test_a_function_that_is_not_offered_is_not_called() -> None:
    assert calls(play({"calls": [WEATHER, TIMER]}, PluginConfig())) == []
    only = PluginConfig(tools=Tools(OFFERED.tools.functions, "required", "set_timer"))
    assert calls(play({"calls": [WEATHER, TIMER]}, only)) == [("set_timer", '{"minutes":5}')]


def test_a_line_can_tell_the_outputs_of_functions() -> None:
    conversation = (
        ItemView(id="a", role="tool", text="an old one", call_id="c0"),
        ItemView(id="b", role="user", text="weather?"),
        ItemView(id="c", role="assistant", text="", call=ToolCall("c1", "get_weather", "{}")),
        ItemView(id="d", role="tool", text="sunny", call_id="c1"),
        ItemView(id="e", role="tool", text="set", call_id="c2"),
    )
    assert SayText("r1", "It is sunny set.") in play(
        {"line": "It is {outputs}."}, OFFERED, *conversation
    )


def test_calls_of_an_interrupted_turn_are_forgotten() -> None:
    plugin = create({"turns": [{"line": "One moment.", "calls": [WEATHER]}]})
    state = plugin.open(OFFERED)
    plugin.step(state, ResponseRequested("r1", (), OFFERED))
    plugin.step(state, Interrupted("r1", ""))
    assert state.turns == {}
