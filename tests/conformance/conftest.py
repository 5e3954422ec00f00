from __future__ import annotations

from pathlib import Path

import pytest

from duologue.settings import Settings
from tests.conformance.talking_gateway import talking_settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a gateway that talks."""
    monkeypatch.syspath_prepend(tmp_path)
    return talking_settings(tmp_path)
