"""The omni plugin: a model that hears, sees, thinks and speaks by itself, in turns."""

from duologue.duplex_plugins.omni.plugin import OmniPlugin, create

__all__ = ["OmniPlugin", "create"]
