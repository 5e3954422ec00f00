"""Loads the smallest artifact from the package index that this machine has configured."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from duologue.artifacts.progress import shown_on
from duologue.artifacts.settings import ArtifactSettings, SourceKind
from duologue.artifacts.store import Store

pytestmark = pytest.mark.models


def test_the_smallest_artifact_can_be_pulled(tmp_path: Path) -> None:
    store = Store(ArtifactSettings(cache_dir=tmp_path, sources=(SourceKind.PACKAGE,)))
    said = io.StringIO()
    with shown_on(said) as progress:
        store.pull(["silero-vad"], progress)
    (verdict,) = store.verify(["silero-vad"])
    assert verdict.problems == ()
    assert "silero-vad: ready (package)" in said.getvalue()
    notice = (store.path("silero-vad").parent / "NOTICE.txt").read_text("utf-8")
    assert "Copyright (c) 2020-present Silero Team" in notice
