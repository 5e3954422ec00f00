from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.gateway.http.settings import HttpSettings


def test_a_body_has_room_for_a_file_of_25_megabytes_in_base64() -> None:
    assert HttpSettings().max_body_bytes > 25_000_000 * 4 / 3


def test_a_time_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValidationError):
        HttpSettings(request_timeout_s=0)
