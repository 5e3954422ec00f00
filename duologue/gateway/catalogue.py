"""What the models of this server can do without a call, and which name means which model.

This module must not know requests or how a pipeline works.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from duologue.core.errors import ProtocolError
from duologue.duplex_plugins.contract import DuplexPlugin
from duologue.engines.ports import EnginePort
from duologue.engines.speech_offer import SpeechOffer
from duologue.protocol.errors import ErrorCode, refused, shown

Task: TypeAlias = Literal["chat", "speech", "transcription"]

_CANNOT: Mapping[Task, str] = {
    "chat": "answer text",
    "speech": "speak",
    "transcription": "transcribe speech",
}


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One model.

    Args:
        pipelines: What serves each task; a task that is not here cannot be done.
        voices: The first is the default.
        speeds: The slowest and the fastest that its voice can speak by itself.
        sees: It understands pictures; ``hears``: recordings, without a recogniser.
        adapter: Weights to lay over its language model's.
        languages: What its recogniser understands, as ISO 639-1; empty: any.
        translates: Its recogniser can answer in English, whatever is spoken.
        realtime: It holds calls.
        answers_aloud: What serves chat says its answers itself.
    """

    name: str
    pipelines: Mapping[Task, str]
    voices: Sequence[str]
    speeds: tuple[float, float] = (1.0, 1.0)
    sees: bool = False
    hears: bool = False
    adapter: str = ""
    languages: Sequence[str] = ()
    translates: bool = False
    realtime: bool = True
    answers_aloud: bool = False

    def can(self, task: Task) -> bool:
        """Tell whether the model does this."""
        return task in self.pipelines

    def pipeline(self, task: Task, param: str = "model") -> str:
        """Return the pipeline for a task.

        Args:
            param: The field that asked for it.

        Raises:
            ProtocolError: The model cannot do it.
        """
        if task not in self.pipelines:
            able = ", ".join(self.pipelines) or "realtime calls alone"
            raise refused(
                f"the model {self.name} cannot {_CANNOT[task]}; it offers: {able}",
                param,
                ErrorCode.UNSUPPORTED,
            )
        return self.pipelines[task]


class Catalogue:
    """All models.

    Args:
        models: The first is the default.
        default_for: Patterns of names that mean the default.
    """

    def __init__(self, models: Sequence[ServedModel], default_for: Sequence[str] = ()) -> None:
        self.models = tuple(models)
        self._by_name = {model.name: model for model in models}
        self._default_for = tuple(default_for)

    def find(self, name: str | None, task: Task | None = None) -> ServedModel:
        """Return the model that a client means; without a name, the default.

        Args:
            task: What it is wanted for: the default is the first that can do it, if any can.

        Raises:
            ProtocolError: There is none of this name.
        """
        if name in self._by_name:
            return self._by_name[name]
        if name is None or any(fnmatchcase(name, pattern) for pattern in self._default_for):
            able = (model for model in self.models if task is not None and model.can(task))
            return next(able, self.models[0])
        known = ", ".join(self._by_name)
        raise ProtocolError(
            f"there is no model {shown(name)} here; there are: {known}",
            code=ErrorCode.MODEL_NOT_FOUND,
            param="model",
        )


def speaking_models(offers: Mapping[str, SpeechOffer], engine: EnginePort) -> Sequence[ServedModel]:
    """Return the pipelines that speak without a plugin, each a model of its own name.

    Some are given a text to speak, others a conversation that they answer in text and speech.
    """
    return [
        ServedModel(
            name,
            {"chat" if offer.answers else "speech": name},
            offer.voices,
            (offer.slowest, offer.fastest),
            realtime=False,
            sees=offer.sees,
            hears=offer.hears,
            answers_aloud=offer.answers,
        )
        for name, offer in offers.items()
        if engine.has_pipeline(name)
    ]


def served_models(
    plugins: Mapping[str, DuplexPlugin],
    engine: EnginePort,
    recogniser: str | None,
    *,
    languages: Sequence[str] = (),
    translates: bool = False,
) -> list[ServedModel]:
    """Return what each plugin offers, as far as the engine has the pipelines for it.

    Args:
        recogniser: The pipeline that hears for models without one of their own.
        languages: What recognisers understand, as ISO 639-1; empty: any.
        translates: They can answer in English, whatever is spoken.
    """
    models = []
    for name, plugin in plugins.items():
        capabilities = plugin.capabilities()
        one_shot = capabilities.one_shot
        offered: dict[Task, str | None] = {
            "chat": one_shot.chat,
            "speech": one_shot.speech,
            "transcription": one_shot.transcription or recogniser,
        }
        pipelines = {
            task: pipeline
            for task, pipeline in offered.items()
            if pipeline is not None and engine.has_pipeline(pipeline)
        }
        models.append(
            ServedModel(
                name,
                pipelines,
                capabilities.voices,
                one_shot.speeds,
                sees=capabilities.sees,
                adapter=one_shot.adapter,
                languages=languages,
                translates=translates,
            )
        )
    return models
