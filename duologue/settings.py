"""All settings of the server: one root, whose sections live beside the code that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, ValidationError, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from duologue.artifacts.settings import ArtifactSettings
from duologue.config import Section
from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.hosts.settings import HostsSettings
from duologue.jobs.settings import JobSettings
from duologue.sessions.settings import SessionSettings
from duologue.telemetry.settings import TelemetrySettings


class ModelSettings(Section):
    """A model that clients can ask for."""

    name: str
    """What clients call it."""

    plugin: str
    """The plugin behind it: the name of an entry point, or ``package.module:factory``."""

    options: Mapping[str, Any] = Field(default_factory=dict)
    """The plugin's own settings; the plugin checks them."""


class Settings(Section):
    """The root: sections, and what the server consists of."""

    also_reads: ClassVar[frozenset[str]] = frozenset({"DUOLOGUE_TRACEBACK"})

    models: Annotated[tuple[ModelSettings, ...], Field(min_length=1)] = (
        ModelSettings(name="duologue", plugin="cascaded"),
    )
    """Models to serve; the first is the default."""

    @field_validator("models")
    @classmethod
    def _each_has_a_name_of_its_own(
        cls, models: tuple[ModelSettings, ...]
    ) -> tuple[ModelSettings, ...]:
        names = [model.name for model in models]
        for number, name in enumerate(names):
            if name in names[:number]:
                # Of its name alone: all that was given may hold secrets, and would be shown.
                error = PydanticCustomError("model_twice", "another model has this name")
                place = InitErrorDetails(type=error, loc=(number, "name"), input=name)
                raise ValidationError.from_exception_data("models", [place])
        return models

    gateway: GatewaySettings = GatewaySettings()
    sessions: SessionSettings = SessionSettings()
    hosts: HostsSettings = HostsSettings()
    engine: EngineSettings = EngineSettings()
    jobs: JobSettings = JobSettings()
    artifacts: ArtifactSettings = Field(default_factory=ArtifactSettings)
    telemetry: TelemetrySettings = TelemetrySettings()
