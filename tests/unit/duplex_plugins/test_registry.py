"""Plugins are found by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from duologue.core.errors import ConfigError
from duologue.duplex_plugins.echo import EchoPlugin
from duologue.duplex_plugins.registry import make_plugin, plugin_names


def test_the_built_in_plugins_are_installed() -> None:
    assert {"cascaded", "echo", "scripted"} <= set(plugin_names())


def test_a_plugin_is_made_from_its_name_and_options() -> None:
    assert isinstance(make_plugin("echo", {}), EchoPlugin)


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no plugin .nosuch.; installed are .*echo"):
        make_plugin("nosuch", {})


def test_a_plugin_is_found_by_its_place() -> None:
    plugin = make_plugin("duologue.duplex_plugins.echo.plugin:create", {})
    assert isinstance(plugin, EchoPlugin)


@pytest.mark.parametrize("place", ["no.such.module:create", f"{EchoPlugin.__module__}:nothing"])
def test_a_place_where_there_is_no_plugin_is_refused(place: str) -> None:
    with pytest.raises(ConfigError, match=rf"plugin '{place}' cannot be imported"):
        make_plugin(place, {})


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (":::", "is no place"),
        ("..a:b", "is no place"),
        ("os:system", "is not made from its options"),
        ("builtins:dict", "is none: it makes dict"),
    ],
)
def test_what_makes_no_plugin_is_refused(place: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"plugin '{place}' {said}"):
        make_plugin(place, {})


def test_a_name_that_two_packages_claim_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "other-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[duologue.plugins]\necho = other:create\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"more than one plugin 'echo': .*other:create"):
        make_plugin("echo", {})


def test_options_are_the_plugins_to_judge() -> None:
    with pytest.raises(ConfigError, match="plugin echo"):
        make_plugin("echo", {"volume": 3})
