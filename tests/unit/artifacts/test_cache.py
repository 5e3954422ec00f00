from __future__ import annotations

import threading
from pathlib import Path

import pytest

from duologue.artifacts.cache import Cache
from duologue.artifacts.errors import CacheError, PullCancelled
from duologue.artifacts.manifest import load_manifest
from tests.patience import PATIENCE_S


def test_each_artifact_has_a_folder_of_its_own() -> None:
    artifact = load_manifest().get("silero-vad")
    cache = Cache(Path("/cache"))
    assert cache.file(artifact, artifact.files[0]) == Path(
        "/cache/models/silero-vad/silero_vad.onnx"
    )
    assert cache.notice(artifact) == Path("/cache/models/silero-vad/NOTICE.txt")


def test_room_is_that_of_the_disk_even_before_the_folder_exists(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "not" / "yet")
    assert cache.free_bytes() > 0
    cache.require_room(0)
    with pytest.raises(CacheError, match=r"1,000,000,000,000 MB.*DUOLOGUE_CACHE"):
        cache.require_room(10**18)


def test_a_second_writer_waits_for_the_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    order: list[str] = []
    waits, never = threading.Event(), threading.Event()

    def second() -> None:
        with cache.one_writer(waits.set, never):
            order.append("second")

    with cache.one_writer(lambda: None, never):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(PATIENCE_S)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_a_writer_that_waits_can_be_stopped(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cancel = threading.Event()
    with (
        cache.one_writer(lambda: None, cancel),
        pytest.raises(PullCancelled),
        cache.one_writer(cancel.set, cancel),
    ):
        raise AssertionError("two writers at once")


def test_the_lock_is_free_after_a_failure(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    never = threading.Event()
    with pytest.raises(ZeroDivisionError), cache.one_writer(lambda: None, never):
        raise ZeroDivisionError
    with cache.one_writer(lambda: pytest.fail("still locked"), never):
        pass


def test_a_folder_that_cannot_be_made_is_told() -> None:
    with (
        pytest.raises(CacheError, match="DUOLOGUE_CACHE"),
        Cache(Path("/dev/null/cache")).one_writer(lambda: None, threading.Event()),
    ):
        raise AssertionError("locked nothing")
