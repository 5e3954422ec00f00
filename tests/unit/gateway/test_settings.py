from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.gateway.settings import GatewaySettings
from duologue.protocol.limits import MAX_APPEND_BYTES


def test_the_largest_append_fits_into_a_message_and_one_byte_more_can_still_be_refused() -> None:
    base64 = (MAX_APPEND_BYTES + 1 + 2) // 3 * 4
    assert base64 + 1000 < GatewaySettings().max_message_bytes


@pytest.mark.parametrize(
    "wrong",
    [{"port": -1}, {"port": 65536}, {"heartbeat_s": 0}, {"close_timeout_s": 0}, {"max_message": 1}],
)
def test_values_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        GatewaySettings(**wrong)


def test_keys_are_not_shown() -> None:
    assert "sesame" not in repr(GatewaySettings(api_keys=("sesame",)))
