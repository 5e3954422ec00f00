"""The policy of Moshi. It has one voice and no persona: instructions of a client change nothing."""

from __future__ import annotations

from collections.abc import Mapping

from duologue.config import parse_section
from duologue.duplex_plugins.lockstep.plugin import LockstepModel, LockstepPlugin
from duologue.duplex_plugins.lockstep.settings import LockstepSettings


class MoshiSettings(LockstepSettings):
    """What the configuration may set."""

    pipeline: str = "moshi"
    """Pipeline that runs the model."""

    voices: tuple[str, ...] = ("moshi",)
    """What its one voice is called: the weights decide which it is."""


def create(options: Mapping[str, object]) -> LockstepPlugin:
    """Make the plugin from its block of the configuration."""
    settings = parse_section(MoshiSettings, options, whose="plugin moshi")
    model = LockstepModel(pipeline=settings.pipeline, voices=settings.voices)
    return LockstepPlugin(model, settings)
