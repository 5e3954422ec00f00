from __future__ import annotations

import pytest

from duologue.core.clock import SystemClock
from duologue.core.ids import id_maker
from duologue.engines.media_payloads import MakeVideo, StepsDone, VideoData
from duologue.gateway.media.filming import Filming, VideoJob, read_job, stored
from duologue.gateway.route_requests import RouteRequests
from tests.unit.gateway.media.test_drawing import Answering

ASK = MakeVideo("waves", 64, 48, 9, 8, 4, 3.5, 7, source=b"film")
JOB = VideoJob("ink", ASK, "video_1")


def test_a_job_is_kept_whole() -> None:
    assert read_job(stored(JOB)) == JOB


async def test_the_work_of_a_job_is_its_film_and_its_progress() -> None:
    pieces = [VideoData(b"ftyp", 0, "video/mp4"), VideoData(b"moof", 1, "video/mp4")]
    engine = Answering(StepsDone(1, 4), StepsDone(4, 4), *pieces)
    filming = Filming(RouteRequests(engine, SystemClock(), id_maker(), 10))
    told: list[int] = []
    made = [piece async for piece in filming.work(stored(JOB), told.append)]
    assert made == [("video/mp4", b"ftyp"), ("video/mp4", b"moof")]
    assert told == [25, 99], "it is not done before its file is whole"
    (request,) = engine.submitted
    assert request.first == ASK


@pytest.mark.parametrize("total", [0, 1])
async def test_no_steps_are_no_reason_to_fail(total: int) -> None:
    engine = Answering(StepsDone(0, total))
    filming = Filming(RouteRequests(engine, SystemClock(), id_maker(), 10))
    assert [piece async for piece in filming.film("ink", ASK)] == []
