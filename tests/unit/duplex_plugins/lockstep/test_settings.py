from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.duplex_plugins.lockstep.settings import LockstepSettings


def test_the_model_leads_by_three_frames_at_most() -> None:
    assert LockstepSettings().lead_ms == 3 * 80


@pytest.mark.parametrize("change", [{"lead_ms": 0}, {"quiet_dbfs": 1.0}, {"max_restarts": -1}])
def test_what_makes_no_sense_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        LockstepSettings(**change)
