from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.robot.settings import RobotSettings


def test_zero_never_lets_go_and_no_deadline_is_none() -> None:
    assert RobotSettings(idle_timeout_s=0).idle_timeout_s == 0
    with pytest.raises(ValidationError):
        RobotSettings(deadline_s=0)


def test_robots_leave_callers_most_of_the_slots_that_both_may_use() -> None:
    http = HttpSettings()
    weights = http.class_weights
    shared = http.max_requests * weights.interactive // (weights.interactive + weights.batch)
    assert RobotSettings().max_connections <= shared // 2
