from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.telemetry.settings import TelemetrySettings


def test_private_values_are_dropped_and_thirty_seconds_recorded_unless_asked_otherwise() -> None:
    settings = TelemetrySettings()
    assert not settings.log_private
    assert settings.flight_entries >= 30 * 33  # 31 detector windows a second, and some events
    assert settings.flight_folder is None


@pytest.mark.parametrize("change", [{"log_level": "loud"}, {"flight_entries": -1}])
def test_values_out_of_bounds_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TelemetrySettings.model_validate(change)
