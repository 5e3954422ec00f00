"""Scales that all pictures share."""

from __future__ import annotations

import numpy as np

from duologue.commands.picture.palette import envelope
from tests.fakes.talking_gateway import speech


def test_the_envelope_follows_the_loudness() -> None:
    levels = envelope(bytes(4800) + speech(100) + bytes(4800), 24_000)
    assert len(levels) == 30
    assert levels[:9].max() == 0
    assert np.allclose(levels[12:18], 8000 / 32768, rtol=0.05)
    assert len(envelope(b"\0\0", 24_000)) == 0


def test_its_steps_are_time_at_any_rate() -> None:
    assert len(envelope(bytes(1600), 8000)) == 10
