from __future__ import annotations

import numpy as np
import pytest

from duologue.duplex_plugins.lockstep.loudness import Loudness


def tone(dbfs: float) -> bytes:
    peak = 32768 * 10 ** (dbfs / 20) * 2**0.5
    samples = peak * np.sin(np.arange(1920) * 2 * np.pi * 10 / 1920)
    return samples.round().astype("<i2").tobytes()


@pytest.mark.parametrize(("dbfs", "quiet"), [(-60, True), (-51, True), (-49, False), (-3, False)])
def test_the_level_decides(dbfs: float, quiet: bool) -> None:
    assert Loudness(-50).is_quiet(tone(dbfs)) is quiet


def test_the_loudest_frame_does_not_overflow_and_an_empty_one_is_quiet() -> None:
    assert not Loudness(-1).is_quiet(b"\x00\x80" * 1920)
    assert Loudness(-90).is_quiet(b"")
