"""The policy of PersonaPlex: ``voice`` is a file of its archive, ``instructions`` the persona.

It is told both in the beginning and stays who it is: a change takes effect as long as it has said
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from duologue.config import parse_section
from duologue.duplex_plugins.lockstep.plugin import LockstepModel, LockstepPlugin
from duologue.duplex_plugins.lockstep.settings import LockstepSettings

VOICES = (
    *(f"NATF{number}" for number in range(4)),
    *(f"NATM{number}" for number in range(4)),
    *(f"VARF{number}" for number in range(5)),
    *(f"VARM{number}" for number in range(5)),
)
"""Files of ``voices.tgz``: natural and varied, female and male."""


class PersonaplexSettings(LockstepSettings):
    """What the configuration may set."""

    pipeline: str = "personaplex"
    """Pipeline that runs the model."""

    voices: tuple[str, ...] = VOICES
    """Names of the voices that the pipeline has, without ``.pt``; the first is the default."""

    pins_persona: bool = False
    """What it was told stays in sight for the whole call; its window is shorter by that much."""


def create(options: Mapping[str, object]) -> LockstepPlugin:
    """Make the plugin from its block of the configuration."""
    settings = parse_section(PersonaplexSettings, options, whose="plugin personaplex")
    model = LockstepModel(
        pipeline=settings.pipeline,
        voices=settings.voices,
        reads_instructions=True,
        pins_persona=settings.pins_persona,
        window_frames=2999,
    )
    return LockstepPlugin(model, settings)
