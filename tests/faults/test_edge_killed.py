"""A gateway that is killed costs its calls a moment, and not a sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.edge_killed import edge_killed

CALLS = 8


@pytest.mark.timeout(90)  # four processes
async def test_calls_of_a_killed_gateway_go_on_at_whichever_answers(tmp_path: Path) -> None:
    outcome = await edge_killed(tmp_path, CALLS, before_s=1.0, after_s=2.0)
    assert (outcome.resumed, outcome.intact, outcome.errors) == (CALLS, CALLS, 0)
