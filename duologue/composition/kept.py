"""What is kept beyond a request, made from the settings: jobs on disk, answers in memory.

This module must not know which process keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from duologue.core.clock import Clock
from duologue.core.ids import IdMaker
from duologue.engines.pipeline import Pipeline
from duologue.engines.ports import EnginePort
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.keyring import job_caller
from duologue.gateway.media.filming import VIDEO_JOB, Filming
from duologue.gateway.route_requests import RouteRequests
from duologue.hosts.answers import LocalAnswers
from duologue.hosts.idempotency import IdempotencyKeys
from duologue.hosts.spoken_answers import SpokenAnswers
from duologue.settings import Settings

if TYPE_CHECKING:
    from duologue.jobs.desk import JobDesk


def make_job_desk(
    settings: Settings,
    pipelines: Iterable[Pipeline],
    engine: EnginePort,
    clock: Clock,
    new_id: IdMaker,
    turn: Callable[[str], AbstractAsyncContextManager[None]],
) -> JobDesk | None:
    """Return the desk, which has yet to be opened; ``None`` where no model makes videos.

    Args:
        turn: Holds a slot for a job of somebody, once there is one.
    """
    if not makes_videos(pipelines):
        return None
    # The database's library is loaded only where it is needed.
    from duologue.jobs.desk import JobDesk
    from duologue.jobs.files import JobFiles
    from duologue.jobs.store import JobStore

    folder = settings.jobs.folder or settings.artifacts.cache_dir / "jobs"
    client = RouteRequests(engine, clock, new_id, settings.gateway.http.media_timeout_s)
    return JobDesk(
        JobStore(folder / "jobs.sqlite"),
        JobFiles(folder),
        {VIDEO_JOB: Filming(client).work},
        settings.jobs,
        clock,
        turn=turn,
        quotas={
            job_caller(key.key.get_secret_value()): key.max_jobs
            for key in settings.gateway.named_keys
            if key.max_jobs is not None
        },
    )


def makes_videos(pipelines: Iterable[Pipeline]) -> bool:
    """Tell whether a model makes videos, which are jobs."""
    return any(each.offer is not None and each.offer.offers("videos") for each in pipelines)


def make_answers(http: HttpSettings, clock: Clock) -> LocalAnswers:
    """Return the answers that later requests may refer to; there are none yet."""
    keys = IdempotencyKeys(http.idempotency_s, http.idempotency_keys, http.idempotency_bytes)
    return LocalAnswers(keys, SpokenAnswers(), clock)
