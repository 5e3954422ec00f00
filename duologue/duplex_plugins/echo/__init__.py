"""The echo plugin: a full-duplex model without a model. Hears and speaks at the same time."""

from duologue.duplex_plugins.echo.plugin import EchoPlugin, create

__all__ = ["EchoPlugin", "create"]
