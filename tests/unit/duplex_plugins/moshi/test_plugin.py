from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError
from duologue.duplex_plugins.contract import ConfigChanged, PluginConfig
from duologue.duplex_plugins.moshi.plugin import create
from tests.unit.duplex_plugins.lockstep.stream import HEARD, start_of


def test_it_has_one_voice_and_no_persona() -> None:
    plugin = create({"voices": ["moshika"]})
    assert plugin.capabilities().voices == ("moshika",)
    state = plugin.open(PluginConfig())
    plugin.step(state, ConfigChanged(PluginConfig(instructions="You are a pirate.")))
    start = start_of(plugin.step(state, HEARD))
    assert (start.instructions, start.voice) == ("", "moshika")


def test_a_wrong_option_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="plugin moshi"):
        create({"voice": "moshika"})
