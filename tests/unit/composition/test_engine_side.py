from __future__ import annotations

import pytest

from duologue.artifacts.errors import ArtifactMissing
from duologue.artifacts.settings import ArtifactSettings
from duologue.composition.engine_side import (
    class_weights,
    configured_pipelines,
    labels,
    make_engine_side,
    named_pipelines,
)
from duologue.core.clock import SystemClock
from duologue.core.ids import IdMaker
from duologue.engines.ports import WorkClass
from duologue.gateway.http.settings import ClassWeights
from duologue.settings import Settings
from tests.fakes.media_gateway import media_settings
from tests.fakes.small_gateway import small_settings


def test_a_gateway_knows_pipelines_without_their_weights(tmp_path) -> None:  # type: ignore[no-untyped-def]
    settings = Settings(artifacts=ArtifactSettings(cache_dir=tmp_path))
    assert {"vad", "llm", "tts"} <= set(named_pipelines(settings))
    with pytest.raises(ArtifactMissing):
        configured_pipelines(settings)


async def test_the_parts_fit_together() -> None:
    def new_id(prefix: str) -> str:
        return f"{prefix}_of_ours"

    make: IdMaker = new_id
    side = make_engine_side(small_settings(), SystemClock(), new_id=make)
    assert list(side.plugins) == ["scripted", "echo", "caller"]
    assert side.workers().ready == 0
    assert side.sessions.open("echo").id == "sess_of_ours"
    assert len(side.host) == 1
    side.sessions.close_all("closed")


def test_images_and_videos_have_a_share_where_there_are_any() -> None:
    weights = ClassWeights(interactive=5, batch=2)
    assert class_weights(weights, named_pipelines(small_settings()).values()) == {
        WorkClass.INTERACTIVE: 5
    }
    assert class_weights(weights, named_pipelines(media_settings()).values()) == {
        WorkClass.INTERACTIVE: 5,
        WorkClass.BATCH: 2,
    }


def test_every_label_is_known_before_anything_runs() -> None:
    settings = small_settings()
    known = labels(settings, named_pipelines(settings))
    assert known.plugins == ("scripted", "echo", "caller")
    assert "session_host_lost" in known.close_reasons
