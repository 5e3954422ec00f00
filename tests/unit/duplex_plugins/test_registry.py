"""Plugins are found by name."""

from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError
from duologue.duplex_plugins.echo import EchoPlugin
from duologue.duplex_plugins.registry import make_plugin, plugin_names


def test_the_built_in_plugins_are_installed() -> None:
    assert {"cascaded", "echo", "scripted"} <= set(plugin_names())


def test_a_plugin_is_made_from_its_name_and_options() -> None:
    assert isinstance(make_plugin("echo", {}), EchoPlugin)


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no plugin .parrot.; installed are .*echo"):
        make_plugin("parrot", {})


def test_options_are_the_plugins_to_judge() -> None:
    with pytest.raises(ConfigError, match="plugin echo"):
        make_plugin("echo", {"volume": 3})
