from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from duologue.composition.engine_side import named_pipelines
from duologue.composition.kept import make_answers, make_job_desk, makes_videos
from duologue.core.clock import SystemClock
from duologue.core.ids import id_maker
from duologue.jobs.settings import JobSettings
from tests.fakes.engine import FakeEngine
from tests.fakes.media_gateway import media_settings
from tests.fakes.small_gateway import small_settings


def test_there_is_a_desk_where_a_model_makes_videos_and_it_touches_nothing_yet(
    tmp_path: Path,
) -> None:
    clock, new_id = SystemClock(), id_maker()
    folder = tmp_path / "jobs"
    for settings, makes in (
        (media_settings(jobs=JobSettings(folder=folder)), True),
        (small_settings(), False),
    ):
        pipelines = named_pipelines(settings).values()
        assert makes_videos(pipelines) is makes
        desk = make_job_desk(
            settings, pipelines, FakeEngine(), clock, new_id, lambda _caller: nullcontext()
        )
        assert (desk is not None) is makes
    assert not folder.exists()


async def test_answers_are_kept_as_the_settings_say() -> None:
    http = small_settings().gateway.http.model_copy(update={"idempotency_bytes": 3})
    kept = make_answers(http, SystemClock())
    for key, answer in (("a", b"123"), ("b", b"1")):
        assert await kept.begin(key, b"1") is None
        await kept.done(key, answer)
    assert await kept.begin("a", b"1") is None
