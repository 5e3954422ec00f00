"""The echo: hears and speaks at the same time."""

from __future__ import annotations

import pytest

from duologue.core.audio import AudioFrame
from duologue.core.errors import ConfigError
from duologue.duplex_plugins.contract import (
    Audio,
    BeginResponse,
    EndResponse,
    Interrupted,
    PluginConfig,
    ResponseRequested,
    SayAudio,
    Tick,
)
from duologue.duplex_plugins.echo import create
from duologue.duplex_plugins.echo.plugin import EchoPlugin, State

FRAME = Audio(AudioFrame(b"\x01\x00" * 480, 24000, 0))


def make_echo() -> tuple[EchoPlugin, State]:
    plugin = create({})
    return plugin, plugin.open(PluginConfig())


def requested(response_id: str = "r1") -> ResponseRequested:
    return ResponseRequested(response_id, (), PluginConfig())


def test_it_asks_for_the_floor_when_it_first_hears_something() -> None:
    plugin, state = make_echo()
    assert list(plugin.step(state, FRAME)) == [BeginResponse()]


def test_it_says_each_frame_as_it_hears_it() -> None:
    plugin, state = make_echo()
    plugin.step(state, requested())
    assert list(plugin.step(state, FRAME)) == [SayAudio("r1", FRAME.frame.pcm)]


def test_after_an_interruption_it_asks_anew() -> None:
    plugin, state = make_echo()
    plugin.step(state, requested())
    plugin.step(state, Interrupted("another", ""))
    assert list(plugin.step(state, FRAME)) == [SayAudio("r1", FRAME.frame.pcm)]
    plugin.step(state, Interrupted("r1", ""))
    assert list(plugin.step(state, FRAME)) == [BeginResponse()]


@pytest.mark.parametrize("first", ["r1", None])
def test_it_says_nothing_beside_the_conversation(first: str | None) -> None:
    plugin, state = make_echo()
    if first is not None:
        plugin.step(state, requested(first))
    beside = ResponseRequested("r2", (), PluginConfig(), out_of_band=True)
    assert list(plugin.step(state, beside)) == [EndResponse("r2")]
    effect = BeginResponse() if first is None else SayAudio(first, FRAME.frame.pcm)
    assert list(plugin.step(state, FRAME)) == [effect]


def test_what_does_not_concern_it_passes_by() -> None:
    plugin, state = make_echo()
    assert list(plugin.step(state, Tick(1))) == []


def test_it_hears_and_speaks_at_one_rate_and_decides_itself() -> None:
    capabilities = create({}).capabilities()
    assert capabilities.hears_audio
    assert capabilities.decides_turns
    assert capabilities.input_rate_hz == capabilities.output_rate_hz


def test_it_takes_no_options() -> None:
    with pytest.raises(ConfigError, match="volume"):
        create({"volume": 3})
