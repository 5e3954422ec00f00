"""All that makes images, videos and sounds, put together: models and routes.

This module must not know how anything is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from duologue.engines.media_offer import MediaOffer
from duologue.engines.ports import EnginePort
from duologue.gateway.http.answered_once import AnsweredOnce
from duologue.gateway.http.images import ImageRoutes
from duologue.gateway.http.routes import Route
from duologue.gateway.http.services import HttpServices
from duologue.gateway.http.sounds import SoundRoutes
from duologue.gateway.http.videos import VideoRoutes
from duologue.gateway.media.filming import Filming
from duologue.gateway.media.offers import MediaModels
from duologue.gateway.route_requests import RouteRequests
from duologue.gateway.ws.video_stream import VideoStreamEndpoint
from duologue.hosts.answers import AnswersPort
from duologue.jobs.port import JobPort


class MediaEndpoints:
    """The routes, and what works behind them.

    Args:
        offers: By the name of the pipeline.
        jobs: Takes videos that are fetched later.
        answers: Keeps those to requests with an idempotency key.
    """

    def __init__(
        self,
        services: HttpServices,
        engine: EnginePort,
        offers: Mapping[str, MediaOffer],
        jobs: JobPort | None,
        answers: AnswersPort,
    ) -> None:
        http, clock = services.settings, services.clock
        self.models = MediaModels(offers, http.default_model_for)
        client = RouteRequests(engine, clock, services.new_id, http.media_timeout_s)
        once = AnsweredOnce(answers)
        self._images = ImageRoutes(services, self.models, client, once)
        self._sounds = SoundRoutes(services, self.models, client, once)
        self._filming = Filming(client)
        self._videos = VideoRoutes(services, self.models, self._filming, jobs)
        self._stream = VideoStreamEndpoint(services, self.models, self._filming)

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (
            *self._images.routes(),
            *self._sounds.routes(),
            *self._videos.routes(),
            *self._stream.routes(),
        )

    async def close_all(self, limit_s: float) -> None:
        """Say goodbye to those who watch, for ``limit_s`` at most: the server goes down."""
        await self._stream.close_all(limit_s)
