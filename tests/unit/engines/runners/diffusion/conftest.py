"""Tiny pipelines, made once for all tests of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a tiny pipeline."""
    from tests.fakes.tiny_diffusers.make import make

    folder = tmp_path_factory.mktemp("tiny")

    def folder_of(name: str) -> Path:
        return folder / name if (folder / name).exists() else make(name, folder / name)

    return folder_of
