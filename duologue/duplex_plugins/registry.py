"""Finds plugins by name through the entry point group ``duologue.plugins``.

A plugin package exposes a factory: keyword options from the configuration in, plugin out. This
module must not know any plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

from duologue.core.errors import ConfigError
from duologue.duplex_plugins.contract import DuplexPlugin

GROUP = "duologue.plugins"

PluginFactory = Callable[[Mapping[str, object]], DuplexPlugin]
"""Takes the plugin's block of the configuration and validates it with a class of its own, as
``config.parse_section`` does; raises ``ConfigError`` where it does not like them."""


def plugin_names() -> list[str]:
    """Return the names of all installed plugins."""
    return sorted(point.name for point in entry_points(group=GROUP))


def make_plugin(name: str, options: Mapping[str, object]) -> DuplexPlugin:
    """Make a plugin from its name and its options.

    Raises:
        ConfigError: There is no such plugin, or it does not accept the options.
    """
    found = [point for point in entry_points(group=GROUP) if point.name == name]
    if not found:
        raise ConfigError(
            f"there is no plugin '{name}'; installed are {', '.join(plugin_names()) or 'none'}"
        )
    factory: PluginFactory = found[0].load()
    return factory(options)
