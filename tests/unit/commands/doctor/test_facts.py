from __future__ import annotations

from dataclasses import replace

from tests.unit.commands.doctor.facts import HEALTHY


def test_facts_are_values() -> None:
    assert replace(HEALTHY, cores=4) != HEALTHY
    assert replace(HEALTHY, cores=2) == HEALTHY
