from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError
from duologue.duplex_plugins.contract import ConfigChanged, PluginConfig
from duologue.duplex_plugins.personaplex.plugin import VOICES, create
from tests.unit.duplex_plugins.lockstep.stream import HEARD, start_of


def test_it_has_the_voices_of_its_archive() -> None:
    assert len(VOICES) == 18
    assert {"NATF0", "NATM3", "VARF4", "VARM4"} <= set(VOICES)
    assert create({}).capabilities().voices == VOICES


def test_it_is_told_who_to_be_and_with_which_voice() -> None:
    plugin = create({"pins_persona": True, "seed": 5})
    state = plugin.open(PluginConfig())
    plugin.step(state, ConfigChanged(PluginConfig(instructions="You are a pirate.", voice="NATM1")))
    start = start_of(plugin.step(state, HEARD))
    assert (start.instructions, start.voice) == ("You are a pirate.", "NATM1")
    assert (start.pins_persona, start.seed) == (True, 5)


def test_a_wrong_option_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="plugin personaplex"):
        create({"voice": "NATF0"})
