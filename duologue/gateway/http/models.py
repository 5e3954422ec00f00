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
from duologue.gateway.media.offers import MediaModel, MediaModels

NO_MEDIA = MediaModels({})


class ModelAbilities(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model can be used for, besides being listed."""

    realtime: bool
    chat: bool
    speech: bool
    transcription: bool
    images: bool = False
    videos: bool = False
    sounds: bool = False
    vision: bool = False
    robots: bool = False


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
        media: Those that make images, videos and sounds; they are listed after the others.
        policies: Names of those that drive robots; they come last.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        started_at: float,
        media: MediaModels = NO_MEDIA,
        policies: Sequence[str] = (),
    ) -> None:
        self._catalogue = catalogue
        self._media = media
        self._policies = tuple(policies)
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
        cards = [self._card(model) for model in self._catalogue.models]
        cards += [self._media_card(each) for each in self._media.models]
        cards += [self._policy_card(each) for each in self._policies]
        return json_answer(ModelList(cards))

    async def get(self, request: web.Request) -> web.Response:
        """Answer with one model.

        Raises:
            ProtocolError: There is none of this name.
        """
        name = request.match_info["model"]
        for model in self._media.models:
            if model.name == name:
                return json_answer(self._media_card(model))
        if name in self._policies:
            return json_answer(self._policy_card(name))
        return json_answer(self._card(self._catalogue.find(name)))

    def _card(self, model: ServedModel) -> ModelCard:
        return ModelCard(
            id=model.name,
            created=self._started_at,
            capabilities=ModelAbilities(
                realtime=model.realtime,
                chat=model.can("chat"),
                speech=model.can("speech"),
                transcription=model.can("transcription"),
                vision=model.sees,
            ),
            voices=model.voices,
        )

    def _media_card(self, model: MediaModel) -> ModelCard:
        return ModelCard(
            id=model.name,
            created=self._started_at,
            capabilities=ModelAbilities(
                realtime=False,
                chat=False,
                speech=False,
                transcription=False,
                images=model.offer.offers("images"),
                videos=model.offer.offers("videos"),
                sounds=model.offer.offers("sounds"),
            ),
            voices=(),
        )

    def _policy_card(self, name: str) -> ModelCard:
        abilities = ModelAbilities(
            realtime=False, chat=False, speech=False, transcription=False, robots=True
        )
        return ModelCard(id=name, created=self._started_at, capabilities=abilities, voices=())
