"""``POST /v1/audio/generations``: sounds and music that are described, as files.

This module must not know how a sound comes about.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import msgspec
from aiohttp import web

from duologue.codecs.containers import CONTENT_TYPES, OutputFormat
from duologue.engines.media_payloads import MakeSound
from duologue.gateway.http.answered_once import AnsweredOnce
from duologue.gateway.http.body import read_json
from duologue.gateway.http.routes import JSON, Content, Route
from duologue.gateway.http.services import HttpServices
from duologue.gateway.media import checks
from duologue.gateway.media.offers import MediaModel, MediaModels
from duologue.gateway.media.sounding import sound_file, sounds
from duologue.gateway.route_requests import RouteRequests
from duologue.gateway.speech.encoding import speech_format


class SoundRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The body of ``POST /v1/audio/generations``. Unknown fields are ignored.

    Args:
        prompt: What there is to hear.
        model: None: the first that makes sounds.
        seconds: Length of each; None: as long as the model makes them by itself.
        n: How many. One is answered with the file, several with a list of files.
        response_format: Of the files, as for speech.
    """

    prompt: str
    model: str | None = None
    seconds: float | None = None
    n: int | None = None
    response_format: str = OutputFormat.MP3
    negative_prompt: str | None = None
    num_inference_steps: int | None = None
    guidance_scale: float | None = None
    seed: int | None = None


class MadeSound(msgspec.Struct, frozen=True):
    """One file."""

    b64_json: bytes


class SoundList(msgspec.Struct, frozen=True):
    """The answer to who asked for several."""

    created: int
    data: Sequence[MadeSound]
    response_format: str
    seconds: float


_DECODER = msgspec.json.Decoder(SoundRequest)


class SoundRoutes:
    """The route.

    Args:
        engine: Asks with the time that sounds take.
        once: Keeps answers to requests with an idempotency key.
    """

    def __init__(
        self,
        services: HttpServices,
        models: MediaModels,
        engine: RouteRequests,
        once: AnsweredOnce,
    ) -> None:
        self._services = services
        self._models = models
        self._engine = engine
        self._once = once

    def routes(self) -> Sequence[Route]:
        """For the application."""
        example = {"prompt": "rain on a tin roof", "seconds": 5, "response_format": "wav"}
        return (
            Route(
                method="POST",
                path="/v1/audio/generations",
                operation="createSound",
                summary="Make sounds.",
                handle=self.generate,
                body=(Content(JSON, SoundRequest, (example,)),),
                answers=(
                    *(Content(media) for media in CONTENT_TYPES.values()),
                    Content(JSON, SoundList),
                ),
                refusals=(400, 404, 408, 409, 413, 415, 500, 503, 504),
                timeout_s=self._services.settings.media_timeout_s,
            ),
        )

    async def generate(self, request: web.Request) -> web.Response:
        """Make sounds.

        Raises:
            ClientError: The request cannot be carried out.
        """
        asked = await read_json(request, _DECODER, self._services.settings)
        model = self._models.find(asked.model, "sounds")
        audio_format = speech_format(asked.response_format)
        asks = _asks(asked, model)

        async def make() -> bytes:
            made = await sounds(self._engine, model.name, asks)
            files = [await sound_file(each, audio_format) for each in made]
            if len(files) == 1:
                return files[0]
            return msgspec.json.encode(
                SoundList(
                    created=int(self._services.clock.wall_time()),
                    data=[MadeSound(file) for file in files],
                    response_format=audio_format,
                    seconds=asks[0].seconds,
                )
            )

        # A seed that was drawn does not make two requests different.
        body = await self._once.answer(request, (asked, model.name), make)
        media = CONTENT_TYPES[audio_format] if len(asks) == 1 else JSON
        return web.Response(body=body, content_type=media)


def _asks(asked: SoundRequest, model: MediaModel) -> list[MakeSound]:
    offer = model.offer
    count = checks.count_of(asked.n)
    first = MakeSound(
        checks.check_prompt(asked.prompt, offer),
        checks.sound_s_of(asked.seconds, count, offer),
        checks.steps_of(asked.num_inference_steps, offer),
        checks.guidance_of(asked.guidance_scale, offer),
        checks.seed_of(asked.seed, secrets.randbits(32)),
        negative=asked.negative_prompt or "",
    )
    return [msgspec.structs.replace(first, seed=first.seed + more) for more in range(count)]
