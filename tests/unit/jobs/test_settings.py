from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.jobs.settings import JobSettings


def test_bounds() -> None:
    assert JobSettings().max_running >= 1
    with pytest.raises(ValidationError):
        JobSettings(max_running=0)
