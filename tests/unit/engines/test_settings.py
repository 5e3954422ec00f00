from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.engines.settings import EngineSettings


def test_the_defaults_are_usable() -> None:
    settings = EngineSettings()
    assert settings.restart_backoff_s < settings.restart_backoff_max_s
    assert settings.pipeline_files == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stop_timeout_s", 0),
        ("cancel_grace_s", -1),
        ("restart_backoff_s", 0),
        ("worker_count", 3),
    ],
)
def test_what_is_out_of_bounds_or_unknown_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name):
        EngineSettings(**{name: value})
