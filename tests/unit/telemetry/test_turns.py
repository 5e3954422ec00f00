from __future__ import annotations

import dataclasses

from duologue.telemetry.tracing import MOMENTS
from duologue.telemetry.turns import TurnTimes


def test_every_moment_but_the_end_becomes_an_event_of_the_trace() -> None:
    names = [field.name for field in dataclasses.fields(TurnTimes)]
    assert names == [*MOMENTS, "done"]
    assert all(getattr(TurnTimes(), name) is None for name in names)
