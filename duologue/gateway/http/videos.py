"""``/v1/videos``: videos as jobs that are fetched later, and ``/v1/videos/sync``: one at once.

This module must not know how a video comes about, nor where jobs are kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import TypeVar

import msgspec
from aiohttp import web

from duologue.codecs.films import FilmLimits, first_picture
from duologue.codecs.pictures import encode
from duologue.engines.media_payloads import LoraChoice, MakeVideo
from duologue.engines.ports import WorkClass
from duologue.gateway.auth import caller_id
from duologue.gateway.errors import json_answer
from duologue.gateway.http.body import FormFile, form_message, read_form, read_json
from duologue.gateway.http.images import Lora
from duologue.gateway.http.routes import FORM, JSON, Content, Parameter, Route
from duologue.gateway.http.services import HttpServices
from duologue.gateway.http.streamed import ByteStream
from duologue.gateway.media.filming import (
    MP4,
    VIDEO_JOB,
    Filming,
    VideoJob,
    about,
    read_job,
    stored,
)
from duologue.gateway.media.offers import MediaModel, MediaModels
from duologue.gateway.media.video_checks import VideoFields, video_of
from duologue.gateway.ws.handshake import offered_protocols
from duologue.hosts.idempotency import checked_key
from duologue.jobs.port import JobPort, JobResult, position_of, read_all
from duologue.jobs.records import JobRecord, JobStatus
from duologue.protocol.errors import ErrorCode, refused, shown

T = TypeVar("T")

_PIECE_BYTES = 64 * 1024
_MOST_A_PAGE = 100
_USUAL_A_PAGE = 20


class VideoRequest(VideoFields, frozen=True, kw_only=True):
    """The fields of ``POST /v1/videos``. Unknown ones are ignored.

    Args:
        model: None: the first that makes videos.
        lora: An adapter, in a form as JSON text.
    """

    model: str | None = None
    lora: Lora | str | None = None


class RemixRequest(msgspec.Struct, frozen=True):
    """The body of ``POST /v1/videos/{id}/remix``."""

    prompt: str
    strength: float | None = None
    seed: int | None = None


class VideoError(msgspec.Struct, frozen=True):
    """Why a video could not be made."""

    code: str
    message: str


class Video(msgspec.Struct, frozen=True, kw_only=True):
    """A video: where it is on its way."""

    id: str
    model: str
    status: str
    progress: int
    created_at: int
    prompt: str
    seconds: str
    size: str
    completed_at: int | None = None
    expires_at: int | None = None
    error: VideoError | None = None
    remixed_from_video_id: str | None = None
    object: str = "video"


class VideoList(msgspec.Struct, frozen=True):
    """A page of videos."""

    data: Sequence[Video]
    has_more: bool
    first_id: str | None
    last_id: str | None
    object: str = "list"


class VideoDeleted(msgspec.Struct, frozen=True):
    """A video that is no more."""

    id: str
    deleted: bool = True
    object: str = "video.deleted"


_DECODER = msgspec.json.Decoder(VideoRequest)
_REMIX_DECODER = msgspec.json.Decoder(RemixRequest)
_ID = Parameter("video_id", "Its id.", in_path=True)


class VideoRoutes:
    """The routes.

    Args:
        jobs: Takes videos that are fetched later; ``None``: no model here makes any.
    """

    def __init__(
        self,
        services: HttpServices,
        models: MediaModels,
        filming: Filming,
        jobs: JobPort | None,
    ) -> None:
        self._services = services
        self._models = models
        self._filming = filming
        self._jobs = jobs

    def routes(self) -> Sequence[Route]:
        """For the application."""
        body = (
            Content(FORM, VideoRequest),
            Content(JSON, VideoRequest, ({"prompt": "waves on a beach at night"},)),
        )
        made = (400, 404, 408, 409, 413, 415, 500, 503)
        return (
            _route("POST", "", "createVideo", "Make a video, as a job.", self.create, body, made),
            Route(
                method="GET",
                path="/v1/videos",
                operation="listVideos",
                summary="List videos.",
                handle=self.list,
                answers=(Content(JSON, VideoList),),
                parameters=(
                    Parameter("after", "The last id of the page before."),
                    Parameter("limit", f"Of a page, 1 to {_MOST_A_PAGE}."),
                    Parameter("order", "asc or desc, by the time they were asked for."),
                ),
                refusals=(400, 503),
            ),
            Route(
                method="POST",
                path="/v1/videos/sync",
                operation="createVideoSync",
                summary="Make a video and wait for it.",
                handle=self.sync,
                body=body,
                answers=(Content(MP4),),
                refusals=(*made, 504),
                timeout_s=self._services.settings.media_timeout_s,
                work=WorkClass.BATCH,
            ),
            _route("GET", "/{video_id}", "getVideo", "Say where a video is.", self.get),
            Route(
                method="DELETE",
                path="/v1/videos/{video_id}",
                operation="deleteVideo",
                summary="Delete a video; one that is being made is stopped.",
                handle=self.delete,
                answers=(Content(JSON, VideoDeleted),),
                parameters=(_ID,),
                refusals=(404, 503),
            ),
            Route(
                method="GET",
                path="/v1/videos/{video_id}/content",
                operation="getVideoContent",
                summary="Fetch a video, or a picture of it.",
                handle=self.content,
                answers=(Content(MP4), Content("image/webp")),
                parameters=(_ID, Parameter("variant", "video or thumbnail.")),
                refusals=(400, 404, 422, 503),
            ),
            _route(
                "POST",
                "/{video_id}/remix",
                "remixVideo",
                "Make a video from another one.",
                self.remix,
                (Content(JSON, RemixRequest, ({"prompt": "the same at noon"},)),),
                (*made, 422),
            ),
        )

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Take a video as a job.

        Raises:
            ClientError: The request cannot be carried out.
            CapacityError: Too many wait.
        """
        asked, reference = await self._read(request)
        model, ask = self._ask(asked, reference)
        return await self._submit(request, VideoJob(model.name, ask), asked.seed is None)

    async def sync(self, request: web.Request) -> web.StreamResponse:
        """Make a video and send it.

        Raises:
            ClientError: The request cannot be carried out.
        """
        asked, reference = await self._read(request)
        model, ask = self._ask(asked, reference)
        began = self._services.clock.now()
        pieces = []
        async with aclosing(self._filming.film(model.name, ask)) as film:
            async for piece in film:
                pieces.append(piece.data)
        took_s = self._services.clock.now() - began
        headers = {"X-Model": model.name, "X-Inference-Time-S": f"{took_s:.3f}"}
        return web.Response(body=b"".join(pieces), content_type=MP4, headers=headers)

    async def list(self, request: web.Request) -> web.StreamResponse:
        """List a caller's videos.

        Raises:
            ProtocolError: A parameter is out of bounds, or there is no video ``after``.
        """
        query = request.query
        limit = _limit(query)
        order = query.get("order", "desc")
        if order not in ("asc", "desc"):
            raise refused(f"order is {shown(order)}; it may be asc or desc", "order")
        jobs, caller, after = self._kept(), _caller(request), query.get("after")
        records = await jobs.page(
            caller,
            VIDEO_JOB,
            after=None if after is None else position_of(await jobs.get(caller, after)),
            limit=limit + 1,
            newest_first=order == "desc",
        )
        page = [_video(record) for record in records[:limit]]
        first, last = (page[0].id, page[-1].id) if page else (None, None)
        return json_answer(VideoList(page, len(records) > limit, first, last))

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Say where a video is.

        Raises:
            ProtocolError: There is none.
        """
        job_id = request.match_info["video_id"]
        return json_answer(_video(await self._kept().get(_caller(request), job_id)))

    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Delete a video.

        Raises:
            ProtocolError: There is none.
        """
        job_id = request.match_info["video_id"]
        await self._kept().delete(_caller(request), job_id)
        return json_answer(VideoDeleted(job_id))

    async def content(self, request: web.Request) -> web.StreamResponse:
        """Send a video, or its first picture.

        Raises:
            ProtocolError: There is none, or it is not done.
        """
        variant = request.query.get("variant", "video")
        if variant not in ("video", "thumbnail"):
            raise refused(f"variant is {shown(variant)}; it may be video or thumbnail", "variant")
        film = await self._kept().result(_caller(request), request.match_info["video_id"])
        if variant == "thumbnail":
            data = await read_all(film, _PIECE_BYTES)
            picture = await asyncio.to_thread(_thumbnail, data)
            return web.Response(body=picture, content_type="image/webp")
        return await _send(request, film)

    async def remix(self, request: web.Request) -> web.StreamResponse:
        """Make a video from one that is done.

        Raises:
            ProtocolError: There is none, it is not done, or its model works on no videos.
        """
        asked = await read_json(request, _REMIX_DECODER, self._services.settings)
        job_id, caller = request.match_info["video_id"], _caller(request)
        jobs = self._kept()
        before = read_job((await jobs.get(caller, job_id)).about)
        model = self._models.find(before.pipeline, "video_edits")
        source = await read_all(await jobs.result(caller, job_id), _PIECE_BYTES)
        fields = VideoFields(prompt=asked.prompt, strength=asked.strength, seed=asked.seed)
        changed = video_of(fields, model.offer, source, secrets.randbits(32))
        ask = msgspec.structs.replace(
            before.ask,
            prompt=changed.prompt,
            seed=changed.seed,
            strength=changed.strength,
            image=b"",
            source=source,
        )
        job = VideoJob(model.name, ask, job_id)
        return await self._submit(request, job, asked.seed is None)

    async def _read(self, request: web.Request) -> tuple[VideoRequest, FormFile | None]:
        settings = self._services.settings
        if request.content_type != FORM:
            return await read_json(request, _DECODER, settings), None
        form = await read_form(request, settings)
        if "input_reference" in form.repeated:
            raise refused("there is more than one input_reference", "input_reference")
        return form_message(form, VideoRequest), form.files.get("input_reference")

    def _ask(self, asked: VideoRequest, reference: FormFile | None) -> tuple[MediaModel, MakeVideo]:
        data = b"" if reference is None else reference.data
        is_film = reference is not None and not reference.content_type.startswith("image/")
        model = self._models.find(asked.model, "video_edits" if is_film else "videos")
        ask = video_of(asked, model.offer, data, secrets.randbits(32))
        return model, msgspec.structs.replace(ask, lora=_lora(asked.lora))

    async def _submit(
        self, request: web.Request, job: VideoJob, drew_seed: bool
    ) -> web.StreamResponse:
        given = request.headers.get("Idempotency-Key")
        plain = msgspec.structs.replace(job.ask, seed=0) if drew_seed else job.ask
        record = JobRecord(
            id=self._services.new_id("video"),
            kind=VIDEO_JOB,
            caller=_caller(request),
            about=about(job),
            created_at=self._services.clock.wall_time(),
            idempotency_key=None if given is None else checked_key(given),
            fingerprint=hashlib.sha256(stored(msgspec.structs.replace(job, ask=plain))).digest(),
        )
        return json_answer(_video(await self._kept().submit(record, stored(job))))

    def _kept(self) -> JobPort:
        if self._jobs is None:
            self._models.find(None, "videos")  # says why
            raise AssertionError("where a model makes videos, somebody keeps them")
        return self._jobs


def _route(
    method: str,
    path: str,
    operation: str,
    summary: str,
    handle: object,
    body: Sequence[Content] = (),
    refusals: Sequence[int] = (404, 503),
) -> Route:
    """Return a route that answers with a video."""
    return Route(
        method=method,
        path=f"/v1/videos{path}",
        operation=operation,
        summary=summary,
        handle=handle,  # type: ignore[arg-type]
        body=body,
        answers=(Content(JSON, Video),),
        parameters=(_ID,) if "{" in path else (),
        refusals=refusals,
    )


def _caller(request: web.Request) -> str:
    headers = request.headers
    return caller_id(headers, offered_protocols(headers), request.query_string)


def _limit(query: Mapping[str, str]) -> int:
    given = query.get("limit", str(_USUAL_A_PAGE))
    if not given.isascii() or not given.isdigit() or not 1 <= int(given[:9]) <= _MOST_A_PAGE:
        raise refused(f"limit is {shown(given)}; it may be 1 to {_MOST_A_PAGE}", "limit")
    return int(given)


def _lora(given: Lora | str | None) -> LoraChoice | None:
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given, type=Lora)
        except (msgspec.MsgspecError, RecursionError):
            raise refused('lora is JSON such as {"name": "ink", "scale": 0.8}', "lora") from None
    return None if given is None else LoraChoice(given.name, given.scale)


def _video(record: JobRecord) -> Video:
    job = read_job(record.about)
    ask = job.ask
    failed = record.status is JobStatus.FAILED
    return Video(
        id=record.id,
        model=job.pipeline,
        status=record.status,
        progress=record.progress,
        created_at=int(record.created_at),
        prompt=ask.prompt,
        seconds=f"{ask.pictures / ask.picture_rate:g}",
        size=f"{ask.width}x{ask.height}",
        completed_at=None if record.completed_at is None else int(record.completed_at),
        expires_at=None if record.expires_at is None else int(record.expires_at),
        error=_error(record) if failed else None,
        remixed_from_video_id=job.remixed_from,
    )


def _error(record: JobRecord) -> VideoError:
    """Return what a client is told of a failure: the text of its code, as elsewhere."""
    from duologue.protocol.errors import ERROR_TABLE

    known = record.error_code in set(ErrorCode)
    code = ErrorCode(record.error_code) if known else ErrorCode.STAGE_FAILED
    return VideoError(code, ERROR_TABLE[code].public_text)


def _thumbnail(film: bytes) -> bytes:
    limits = FilmLimits(1 << 26, 1 << 40, 1 << 20)
    return encode(first_picture(film, limits), "webp", 80)


async def _send(request: web.Request, film: JobResult) -> web.StreamResponse:
    try:
        stream = ByteStream(request, MP4, film.size_bytes)
        while data := await film.read(_PIECE_BYTES):
            await stream.write(data)
    finally:
        await film.close()
    return await stream.end()
