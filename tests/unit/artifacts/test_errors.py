from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from duologue.artifacts.errors import ArtifactError, PullFailed, WrongHash, cache_error


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "larger disk"),
        (errno.EDQUOT, "larger disk"),
        (errno.EROFS, "complete cache needs no write access"),
        (errno.EACCES, "complete cache needs no write access"),
        (errno.ENOTDIR, "a folder that you may write"),
    ],
)
def test_a_failed_write_says_what_to_do(number: int, advice: str) -> None:
    error = cache_error(OSError(number, os.strerror(number)), Path("/cache/models"))
    assert "/cache/models" in error.message
    assert os.strerror(number) in error.message
    assert "DUOLOGUE_CACHE" in error.message
    assert advice in error.message


def test_a_wrong_hash_names_both_hashes() -> None:
    error = WrongHash("model.bin", expected="aaa", found="bbb", advice="Pull again.")
    assert "expected aaa" in error.message
    assert "found    bbb" in error.message
    assert error.message.endswith("Pull again.")


def test_a_failed_pull_keeps_each_error() -> None:
    error = PullFailed([ArtifactError("one"), ArtifactError("two")])
    assert [each.message for each in error.errors] == ["one", "two"]
    assert error.message == "one\n\ntwo"
