"""``/v1/models``: which models there are, and what each can do.

This module must not change anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from aiohttp import web

from duologue.gateway.catalogue import Catalogue, ServedModel
from duologue.gateway.errors import json_answer
from duologue.gateway.http.routes import JSON, Content, Parameter, Route


class ModelAbilities(msgspec.Struct, frozen=True):
    """What a model can be used for, besides being listed."""

    realtime: bool
    chat: bool
    speech: bool
    transcription: bool


class ModelCard(msgspec.Struct, frozen=True):
    """One model."""

    id: str
    created: int
    capabilities: ModelAbilities
    voices: Sequence[str]
    object: str = "model"
    owned_by: str = "duologue"


class ModelList(msgspec.Struct, frozen=True):
    """All models; the first is the default."""

    data: list[ModelCard]
    object: str = "list"


class ModelRoutes:
    """The routes that list models.

    Args:
        started_at: Unix seconds; the models' ``created``.
    """

    def __init__(self, catalogue: Catalogue, started_at: float) -> None:
        self._catalogue = catalogue
        self._started_at = int(started_at)

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (
            Route(
                method="GET",
                path="/v1/models",
                operation="listModels",
                summary="List the models and what each can do.",
                handle=self.list,
                answers=(Content(JSON, ModelList),),
                is_work=False,
            ),
            Route(
                method="GET",
                path="/v1/models/{model}",
                operation="getModel",
                summary="Describe one model.",
                handle=self.get,
                answers=(Content(JSON, ModelCard),),
                parameters=(Parameter("model", "Its name.", in_path=True),),
                is_work=False,
            ),
        )

    async def list(self, _request: web.Request) -> web.Response:
        """Answer with all models."""
        return json_answer(ModelList([self._card(model) for model in self._catalogue.models]))

    async def get(self, request: web.Request) -> web.Response:
        """Answer with one model.

        Raises:
            ProtocolError: There is none of this name.
        """
        return json_answer(self._card(self._catalogue.find(request.match_info["model"])))

    def _card(self, model: ServedModel) -> ModelCard:
        return ModelCard(
            id=model.name,
            created=self._started_at,
            capabilities=ModelAbilities(
                realtime=True,
                chat=model.can("chat"),
                speech=model.can("speech"),
                transcription=model.can("transcription"),
            ),
            voices=model.voices,
        )
