"""Finds plugins: by name through the entry point group ``duologue.plugins``, or by their place.

A package with a plugin exposes a factory: its block of the configuration in, plugin out. Ours have
their entry points in ``pyproject.toml`` like those of everybody else: there is no other list. This
module must not know any plugin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points

from duologue.core.errors import ConfigError
from duologue.duplex_plugins.contract import DuplexPlugin

GROUP = "duologue.plugins"
_DOTTED = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
_PLACE = re.compile(f"{_DOTTED}:{_DOTTED}")

PluginFactory = Callable[[Mapping[str, object]], DuplexPlugin]
"""Takes the plugin's block of the configuration and validates it with a class of its own, as
``config.parse_section`` does; raises ``ConfigError`` where it does not like them."""


def plugin_names() -> list[str]:
    """Return the names of all installed plugins."""
    return sorted(point.name for point in entry_points(group=GROUP))


def make_plugin(name: str, options: Mapping[str, object]) -> DuplexPlugin:
    """Make a plugin from its name and its options.

    Args:
        name: Of an entry point; or ``package.module:factory``, which needs none.

    Raises:
        ConfigError: There is no such plugin, or it does not accept the options.
    """
    try:
        factory: PluginFactory = _entry_point(name).load()
    except (ImportError, AttributeError, SyntaxError) as exc:
        raise ConfigError(f"the plugin '{name}' cannot be imported: {exc}") from exc
    try:
        plugin = factory(options)
    except TypeError as exc:
        raise ConfigError(f"the plugin '{name}' is not made from its options: {exc}") from exc
    if not callable(getattr(plugin, "capabilities", None)):
        raise ConfigError(f"the plugin '{name}' is none: it makes {type(plugin).__name__}")
    return plugin


def _entry_point(name: str) -> EntryPoint:
    if ":" in name:
        if not _PLACE.fullmatch(name):
            raise ConfigError(f"the plugin '{name}' is no place, as 'package.module:factory' is")
        return EntryPoint(name, name, GROUP)
    found = {point.value: point for point in entry_points(group=GROUP) if point.name == name}
    if len(found) > 1:
        raise ConfigError(
            f"there is more than one plugin '{name}': {', '.join(sorted(found))}; name the one"
            " that is meant by its place"
        )
    if not found:
        raise ConfigError(
            f"there is no plugin '{name}'; installed are {', '.join(plugin_names()) or 'none'}."
            f" A plugin is an entry point of the group {GROUP}: after adding one, install its"
            " package again; or give its place as 'package.module:factory'"
        )
    return next(iter(found.values()))
