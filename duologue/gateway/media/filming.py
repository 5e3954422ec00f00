"""Videos from the engine: what is stored of a request, and how it becomes a film.

This module must not know routes, nor where jobs are kept.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import msgspec

from duologue.engines.media_payloads import MakeVideo, StepsDone, VideoData
from duologue.gateway.route_requests import RouteRequests

VIDEO_JOB = "video"
MP4 = "video/mp4"

_LAST_PERCENT = 99
"""As long as the file is not whole, it is not done."""

_CREDIT = 16
"""Pieces of a film that may wait here to be written or sent."""


class VideoJob(msgspec.Struct, frozen=True):
    """All that is asked for, as it is stored.

    Args:
        pipeline: Who makes it.
        remixed_from: The job whose film it begins with.
    """

    pipeline: str
    ask: MakeVideo
    remixed_from: str | None = None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(VideoJob)


def stored(job: VideoJob) -> bytes:
    """Return a job as it is kept."""
    return _ENCODER.encode(job)


def about(job: VideoJob) -> bytes:
    """Return what is shown of a job: all but the pictures that came with it."""
    return stored(
        msgspec.structs.replace(job, ask=msgspec.structs.replace(job.ask, image=b"", source=b""))
    )


def read_job(request: bytes) -> VideoJob:
    """Return a job that was kept, or what is shown of one."""
    return _DECODER.decode(request)


class Filming:
    """Makes films."""

    def __init__(self, engine: RouteRequests) -> None:
        self._engine = engine

    async def work(
        self, request: bytes, tell: Callable[[int], None]
    ) -> AsyncGenerator[tuple[str, bytes], None]:
        """Do a stored job; see ``jobs.desk.Work``."""
        job = read_job(request)
        async for piece in self.film(job.pipeline, job.ask, tell):
            yield MP4, piece.data

    async def film(
        self, pipeline: str, ask: MakeVideo, tell: Callable[[int], None] = lambda _progress: None
    ) -> AsyncGenerator[VideoData, None]:
        """Yield a film piece by piece; leaving gives it up.

        Args:
            tell: Takes the progress, 0 to 100.

        Raises:
            EngineError: It cannot be made.
        """
        with self._engine.request(pipeline, ask, credit=_CREDIT) as outputs:
            async for payload in outputs:
                if isinstance(payload, StepsDone):
                    tell(min(_LAST_PERCENT, payload.done * 100 // max(1, payload.total)))
                elif isinstance(payload, VideoData):
                    yield payload
