from __future__ import annotations

from pathlib import Path

import pytest

from duologue.core.errors import ConfigError
from duologue.jobs.settings import JobSettings
from duologue.settings import Settings
from tests.fakes.media_gateway import media_gateway, media_settings


def settings_in(folder: Path, **jobs: int) -> Settings:
    return media_settings(jobs=JobSettings(folder=folder, **jobs))


async def test_all_routes_are_in_the_document(tmp_path: Path) -> None:
    async with media_gateway(settings_in(tmp_path)) as gateway:
        page = await (await gateway.http.get("/openapi.json")).json()
    paths = {
        path
        for path in page["paths"]
        if "/images/" in path or "/video" in path or "/audio/gen" in path
    }
    assert paths == {
        "/v1/audio/generations",
        "/v1/images/generations",
        "/v1/images/edits",
        "/v1/realtime/video",
        "/v1/videos",
        "/v1/videos/sync",
        "/v1/videos/{video_id}",
        "/v1/videos/{video_id}/content",
        "/v1/videos/{video_id}/remix",
    }


async def test_two_servers_do_not_share_their_jobs(tmp_path: Path) -> None:
    async with media_gateway(settings_in(tmp_path)):
        with pytest.raises(ConfigError, match="another server"):
            async with media_gateway(settings_in(tmp_path)):
                pass
