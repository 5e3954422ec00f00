"""``POST /v1/images/generations`` and ``/v1/images/edits``: images, whole or while they are made.

This module must not know how an image comes about.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from aiohttp import web

from duologue.codecs.pictures import CONTENT_TYPES, check_picture
from duologue.engines.media_payloads import DrawImage, ImageData, LoraChoice
from duologue.engines.ports import WorkClass
from duologue.gateway.http.answered_once import AnsweredOnce
from duologue.gateway.http.body import Form, form_message, read_form, read_json
from duologue.gateway.http.routes import EVENTS, FORM, JSON, Content, Route
from duologue.gateway.http.services import HttpServices
from duologue.gateway.http.streamed import event_stream
from duologue.gateway.media import checks
from duologue.gateway.media.drawing import drawn
from duologue.gateway.media.offers import MediaModel, MediaModels
from duologue.gateway.route_requests import RouteRequests
from duologue.protocol.errors import ErrorCode, refused, shown

_CHARS_A_TOKEN = 4
_PIXELS_A_TOKEN = 256


class Lora(msgspec.Struct, frozen=True):
    """An adapter that the model's pipeline has loaded."""

    name: str
    scale: float = 1.0


class ImageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The body of ``POST /v1/images/generations``. Unknown fields are ignored.

    Args:
        model: None: the first that draws.
        response_format: ``b64_json``, or ``url``: the image itself as a ``data:`` URL.
        output_compression: Quality of JPEG and WebP, 0 to 100.
        partial_images: Views of the unfinished image in a stream, 0 to 3.
        strength: For edits: how much may change, up to 1.
    """

    prompt: str
    model: str | None = None
    n: int | None = None
    size: str | None = None
    response_format: str | None = None
    output_format: str | None = None
    output_compression: int | None = None
    background: str | None = None
    stream: bool | None = None
    partial_images: int | None = None
    negative_prompt: str | None = None
    num_inference_steps: int | None = None
    guidance_scale: float | None = None
    seed: int | None = None
    strength: float | None = None
    lora: Lora | None = None


class TokenDetails(msgspec.Struct, frozen=True):
    """What the tokens that were read are of."""

    image_tokens: int
    text_tokens: int


class ImageUsage(msgspec.Struct, frozen=True):
    """An estimate: 4 characters of text, or 16 by 16 pixels, are a token."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: TokenDetails


class MadeImage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One image."""

    b64_json: bytes | None = None
    url: str | None = None


class ImageList(msgspec.Struct, frozen=True):
    """The answer."""

    created: int
    data: Sequence[MadeImage]
    output_format: str
    size: str
    background: str
    quality: str
    usage: ImageUsage


class _View(msgspec.Struct, frozen=True, kw_only=True):
    b64_json: bytes
    created_at: int
    size: str
    quality: str
    background: str
    output_format: str


class _PartialImage(_View, frozen=True, kw_only=True):
    partial_image_index: int


class _CompletedImage(_View, frozen=True, kw_only=True):
    usage: ImageUsage


class PartialGeneration(_PartialImage, frozen=True, tag="image_generation.partial_image"):
    """A view of an image while it is made."""


class CompletedGeneration(_CompletedImage, frozen=True, tag="image_generation.completed"):
    """The image."""


class PartialEdit(_PartialImage, frozen=True, tag="image_edit.partial_image"):
    """A view of an edited image while it is made."""


class CompletedEdit(_CompletedImage, frozen=True, tag="image_edit.completed"):
    """The edited image."""


_DECODER = msgspec.json.Decoder(ImageRequest)
_EVENTS: dict[str, tuple[type[_PartialImage], type[_CompletedImage]]] = {
    "image_generation": (PartialGeneration, CompletedGeneration),
    "image_edit": (PartialEdit, CompletedEdit),
}
_Kind = Literal["image_generation", "image_edit"]


class ImageRoutes:
    """The routes.

    Args:
        engine: Asks with the time that images take.
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
        refusals = (400, 404, 408, 409, 413, 415, 500, 503, 504)
        timeout_s = self._services.settings.media_timeout_s
        example = {"prompt": "a cat on a red chair", "size": "auto"}
        return (
            Route(
                method="POST",
                path="/v1/images/generations",
                operation="createImage",
                summary="Draw images.",
                handle=self.generate,
                body=(Content(JSON, ImageRequest, (example,)),),
                answers=(
                    Content(JSON, ImageList),
                    Content(EVENTS, PartialGeneration | CompletedGeneration),
                ),
                refusals=refusals,
                timeout_s=timeout_s,
                work=WorkClass.BATCH,
            ),
            Route(
                method="POST",
                path="/v1/images/edits",
                operation="editImage",
                summary="Draw images that begin with another one.",
                handle=self.edit,
                body=(Content(FORM, ImageRequest, files=("image",)),),
                answers=(Content(JSON, ImageList), Content(EVENTS, PartialEdit | CompletedEdit)),
                refusals=refusals,
                timeout_s=timeout_s,
                work=WorkClass.BATCH,
            ),
        )

    async def generate(self, request: web.Request) -> web.StreamResponse:
        """Draw images.

        Raises:
            ClientError: The request cannot be carried out.
        """
        asked = await read_json(request, _DECODER, self._services.settings)
        model = self._models.find(asked.model, "images")
        asks = self._asks(asked, model)
        return await self._answer(request, asked, model, asks, "image_generation")

    async def edit(self, request: web.Request) -> web.StreamResponse:
        """Draw images that begin with another one.

        Raises:
            ClientError: The request cannot be carried out.
        """
        form = await read_form(request, self._services.settings)
        asked = form_message(form, ImageRequest)
        model = self._models.find(asked.model, "image_edits")
        image, mask = _files(form)
        check_picture(image, model.offer.max_pixels, "image")
        if mask:
            check_picture(mask, model.offer.max_pixels, "mask")
        strength = checks.strength_of(asked.strength)
        asks = [
            msgspec.structs.replace(ask, image=image, mask=mask, strength=strength)
            for ask in self._asks(asked, model)
        ]
        return await self._answer(request, asked, model, asks, "image_edit")

    def _asks(self, asked: ImageRequest, model: MediaModel) -> list[DrawImage]:
        offer = model.offer
        width, height = checks.size_of(asked.size, offer)
        count = checks.count_of(asked.n)
        checks.check_total(width * height * count, offer, "n")
        if asked.stream and count > 1:
            raise refused(f"n is {count}; a stream shows one image", "n")
        if asked.response_format not in (None, "b64_json", "url"):
            raise refused(
                f"response_format is {shown(asked.response_format)}; it may be b64_json or url",
                "response_format",
            )
        checks.check_background(asked.background)
        first = DrawImage(
            checks.check_prompt(asked.prompt, offer),
            width,
            height,
            checks.steps_of(asked.num_inference_steps, offer),
            checks.guidance_of(asked.guidance_scale, offer),
            checks.seed_of(asked.seed, secrets.randbits(32)),
            negative=asked.negative_prompt or "",
            partials=checks.partials_of(asked.partial_images) if asked.stream else 0,
            media=checks.media_of(asked.output_format),
            quality=checks.quality_of(asked.output_compression),
            lora=None if asked.lora is None else LoraChoice(asked.lora.name, asked.lora.scale),
        )
        return [msgspec.structs.replace(first, seed=first.seed + more) for more in range(count)]

    async def _answer(
        self,
        request: web.Request,
        asked: ImageRequest,
        model: MediaModel,
        asks: Sequence[DrawImage],
        kind: _Kind,
    ) -> web.StreamResponse:
        if asked.stream:
            return await self._stream(request, model, asks, kind)

        async def make() -> bytes:
            async with drawn(self._engine, model.name, asks) as drawings:
                images = await drawings.images()
            return msgspec.json.encode(self._list(asked, asks, images))

        body = await self._once.answer(request, (asked, _what_counts(asks, asked)), make)
        return web.Response(body=body, content_type=JSON)

    def _list(
        self, asked: ImageRequest, asks: Sequence[DrawImage], images: Sequence[ImageData]
    ) -> ImageList:
        return ImageList(
            created=int(self._services.clock.wall_time()),
            data=[_made(image, asked.response_format) for image in images],
            output_format=asks[0].media,
            size=f"{images[0].width}x{images[0].height}",
            background="opaque",
            quality="auto",
            usage=_usage(asks),
        )

    async def _stream(
        self,
        request: web.Request,
        model: MediaModel,
        asks: Sequence[DrawImage],
        kind: _Kind,
    ) -> web.StreamResponse:
        partial, completed = _EVENTS[kind]
        keep_alive_s = self._services.settings.keep_alive_s
        async with (
            event_stream(request, keep_alive_s) as events,
            drawn(self._engine, model.name, asks) as drawings,
        ):
            async for image in drawings.views():
                shared: dict[str, Any] = {
                    "b64_json": image.data,
                    "created_at": int(self._services.clock.wall_time()),
                    "size": f"{image.width}x{image.height}",
                    "quality": "auto",
                    "background": "opaque",
                    "output_format": image.media,
                }
                if image.partial < 0:
                    final = completed(**shared, usage=_usage(asks))
                    await events.send(final, f"{kind}.completed")
                else:
                    view = partial(**shared, partial_image_index=image.partial)
                    await events.send(view, f"{kind}.partial_image")
        return events.response


def _files(form: Form) -> tuple[bytes, bytes]:
    """Return the image and the mask of a form."""
    for name in ("image", "image[]"):
        if name in form.repeated:
            raise refused(
                "there is more than one image; the models here begin with one",
                "image",
                ErrorCode.UNSUPPORTED,
            )
    image = form.files.get("image") or form.files.get("image[]")
    if image is None:
        raise refused("image is missing", "image", ErrorCode.MISSING_PARAMETER)
    mask = form.files.get("mask")
    return image.data, b"" if mask is None else mask.data


def _what_counts(asks: Sequence[DrawImage], asked: ImageRequest) -> Sequence[DrawImage]:
    """Return what makes two requests the same; a seed that was drawn for one does not."""
    if asked.seed is not None:
        return asks
    return [msgspec.structs.replace(ask, seed=0) for ask in asks]


def _made(image: ImageData, form: str | None) -> MadeImage:
    if form != "url":
        return MadeImage(b64_json=image.data)
    encoded = msgspec.json.encode(image.data)[1:-1].decode()
    return MadeImage(url=f"data:{CONTENT_TYPES[image.media]};base64,{encoded}")


def _usage(asks: Sequence[DrawImage]) -> ImageUsage:
    first = asks[0]
    text = -(-len(first.prompt) // _CHARS_A_TOKEN)
    seen = first.width * first.height // _PIXELS_A_TOKEN if first.image else 0
    out = len(asks) * first.width * first.height // _PIXELS_A_TOKEN
    return ImageUsage(text + seen, out, text + seen + out, TokenDetails(seen, text))
