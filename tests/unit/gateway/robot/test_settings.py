from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.gateway.robot.settings import RobotSettings


def test_zero_never_lets_go_and_no_deadline_is_none() -> None:
    assert RobotSettings(idle_timeout_s=0).idle_timeout_s == 0
    with pytest.raises(ValidationError):
        RobotSettings(deadline_s=0)
