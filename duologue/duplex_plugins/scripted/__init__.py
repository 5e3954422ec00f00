"""The scripted plugin: no model, a fixed script or an echo. For tests, and to copy from."""

from duologue.duplex_plugins.scripted.plugin import ScriptedPlugin, ScriptedSettings, create

__all__ = ["ScriptedPlugin", "ScriptedSettings", "create"]
