"""All that makes images and videos, put together: models, routes, and the desk of stored jobs.

This module must not know how anything is made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from duologue.engines.media_offer import MediaOffer
from duologue.engines.ports import EnginePort
from duologue.gateway.admission import Admission
from duologue.gateway.engine_client import EngineClient
from duologue.gateway.http.images import ImageRoutes
from duologue.gateway.http.routes import Route
from duologue.gateway.http.services import HttpServices
from duologue.gateway.http.videos import VideoRoutes
from duologue.gateway.media.filming import VIDEO_JOB, Filming
from duologue.gateway.media.idempotency import IdempotencyKeys
from duologue.gateway.media.offers import MediaModels
from duologue.gateway.ws.video_stream import VideoStreamEndpoint
from duologue.jobs.settings import JobSettings


class MediaEndpoints:
    """The routes, and what works behind them.

    Args:
        offers: By the name of the pipeline.
        folder: Where jobs are kept, unless the settings say it.
    """

    def __init__(
        self,
        services: HttpServices,
        admission: Admission,
        engine: EnginePort,
        offers: Mapping[str, MediaOffer],
        jobs: JobSettings,
        folder: Path,
    ) -> None:
        http, clock = services.settings, services.clock
        self.models = MediaModels(offers, http.default_model_for)
        client = EngineClient(engine, clock, services.new_id, http.media_timeout_s)
        keys = IdempotencyKeys(http.idempotency_s, http.idempotency_keys, http.idempotency_bytes)
        self._images = ImageRoutes(services, self.models, client, keys)
        self._filming = Filming(client)
        self._videos = VideoRoutes(services, self.models, self._filming)
        self._stream = VideoStreamEndpoint(services, admission, self.models, self._filming)
        self._services = services
        self._jobs = jobs
        self._folder = jobs.folder or folder

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (*self._images.routes(), *self._videos.routes(), *self._stream.routes())

    async def close_all(self) -> None:
        """Say goodbye to those who watch: the server goes down."""
        await self._stream.close_all()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take jobs while this lasts; only where there is a model that makes videos.

        Raises:
            ConfigError: The folder of jobs cannot be used.
        """
        if not any(model.offer.offers("videos") for model in self.models.models):
            yield
            return
        # The database's library is loaded only where it is needed.
        from duologue.jobs.desk import JobDesk
        from duologue.jobs.files import JobFiles
        from duologue.jobs.store import JobStore

        desk = JobDesk(
            JobStore(self._folder / "jobs.sqlite"),
            JobFiles(self._folder),
            {VIDEO_JOB: self._filming.work},
            self._jobs,
            self._services.clock,
        )
        async with desk.open():
            self._videos.desk = desk
            try:
                yield
            finally:
                self._videos.desk = None
