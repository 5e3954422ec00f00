"""openpi's own client, unmodified, in an environment of its own: it pins an older NumPy."""

from __future__ import annotations

from pathlib import Path

import pytest

from duologue.app import running_app
from tests.conformance.foreign_client import Caller, hold_call
from tests.conformance.talking_gateway import API_KEY
from tests.fakes import robot_gateway

pytestmark = pytest.mark.clients


async def test_openpi_client(tmp_path: Path) -> None:
    assert robot_gateway.API_KEY == API_KEY
    async with running_app(robot_gateway.robot_settings(tmp_path / "policy", "process")) as app:
        url = f"http://127.0.0.1:{app.url.rpartition(':')[2]}"
        report = await hold_call(Caller("openpi_caller.py", "openpi"), url, tmp_path)
    assert report["metadata"]["image_resolution"] == [16, 24]
    assert (report["shape"], report["dtype"]) == ([5, 7], "float32")
    assert report["error"] == "invalid_value"
    assert report["played"]
    assert report["after"]
