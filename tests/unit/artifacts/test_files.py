from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from duologue.artifacts.errors import CacheError, PullCancelled, WrongHash
from duologue.artifacts.files import sha256_of, write_verified
from tests.unit.artifacts.scene import sha256, some_bytes

CONTENT = some_bytes(3_000_000, seed=5)


def chunks_of(content: bytes) -> Iterator[bytes]:
    yield content[:1000]
    yield content[1000:]


def write(target: Path, content: bytes, size_bytes: int = len(CONTENT)) -> None:
    write_verified(
        target,
        chunks_of(content),
        what="the file",
        expected=sha256(CONTENT),
        size_bytes=size_bytes,
        advice="Pull again.",
    )


def test_the_right_bytes_get_their_name(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "model.bin"
    write(target, CONTENT)
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]


def test_the_wrong_bytes_leave_nothing(tmp_path: Path) -> None:
    wrong = b"x" + CONTENT[1:]
    with pytest.raises(WrongHash) as caught:
        write(tmp_path / "model.bin", wrong)
    assert sha256(CONTENT) in caught.value.message
    assert sha256(wrong) in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_the_wrong_bytes_do_not_touch_the_right_ones(tmp_path: Path) -> None:
    target = tmp_path / "model.bin"
    write(target, CONTENT)
    with pytest.raises(WrongHash):
        write(target, b"wrong")
    assert target.read_bytes() == CONTENT


def test_a_stream_without_end_is_cut(tmp_path: Path) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield bytes(1 << 20)

    with pytest.raises(WrongHash, match="more than 3000000 bytes"):
        write_verified(
            tmp_path / "model.bin",
            endless(),
            what="the file",
            expected=sha256(CONTENT),
            size_bytes=len(CONTENT),
            advice="",
        )
    assert list(tmp_path.iterdir()) == []


def test_a_watcher_may_stop_the_work(tmp_path: Path) -> None:
    def stop(done_bytes: int) -> None:
        raise PullCancelled("stopped")

    with pytest.raises(PullCancelled):
        write_verified(
            tmp_path / "model.bin",
            chunks_of(CONTENT),
            what="the file",
            expected=sha256(CONTENT),
            size_bytes=len(CONTENT),
            advice="",
            watch=stop,
        )
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "model.bin.part").symlink_to("/dev/full")
    with pytest.raises(CacheError, match=r"No space left on device.*larger disk"):
        write(tmp_path / "model.bin", CONTENT)


def test_a_cache_below_a_file_is_told() -> None:
    with pytest.raises(CacheError, match=r"Not a directory.*DUOLOGUE_CACHE"):
        write(Path("/dev/null/cache/model.bin"), CONTENT)


def test_hashing_says_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(CONTENT)
    steps: list[int] = []
    assert sha256_of(path, steps.append) == sha256(CONTENT)
    assert steps == [1 << 20, 2 << 20, len(CONTENT)]
