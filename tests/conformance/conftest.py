from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import uvloop

from duologue.settings import Settings
from tests.conformance.talking_gateway import talking_settings


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a gateway that talks."""
    monkeypatch.syspath_prepend(tmp_path)
    return talking_settings(tmp_path)
