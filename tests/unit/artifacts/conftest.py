from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.artifacts.file_server import FileServer, serving
from tests.unit.artifacts.scene import Scene


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving() as running:
        yield running


@pytest.fixture
def scene(tmp_path: Path, server: FileServer) -> Scene:
    return Scene(tmp_path, server)
