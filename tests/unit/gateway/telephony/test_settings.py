from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.gateway.telephony.settings import TelephonySettings


def test_an_address_loses_its_last_slash_and_must_be_one() -> None:
    settings = TelephonySettings(public_url="https://voice.example.org/")
    assert settings.public_url == "https://voice.example.org"
    with pytest.raises(ValidationError, match="https://"):
        TelephonySettings(public_url="voice.example.org")


def test_the_token_is_not_shown() -> None:
    assert "sesame" not in repr(TelephonySettings(twilio_auth_token="sesame"))
