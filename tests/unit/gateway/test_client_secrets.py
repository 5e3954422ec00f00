from __future__ import annotations

import base64
import random
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import AuthError, LimitExceeded
from duologue.gateway.client_secrets import (
    MAX_SECRET_CHARS,
    MAX_SESSION_BYTES,
    BoundSession,
    ClientSecret,
    ClientSecrets,
    is_client_secret,
)
from duologue.protocol.commands import UpdateSession
from duologue.protocol.json_codec import decode_command
from duologue.protocol.session_patch import SessionPatch

SECRETS = ClientSecrets([b"server key"])
NOW = 1_700_000_000
EVERY_SETTING = b"""{"type":"session.update","session":{"type":"realtime","instructions":"Be kind.",
"output_modalities":["text"],"tool_choice":{"type":"function","name":"f"},"max_output_tokens":100,
"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}],
"tracing":null,"truncation":{"type":"retention_ratio","retention_ratio":0.5},
"audio":{"input":{"format":{"type":"audio/pcmu"},"turn_detection":null,"noise_reduction":null,
"transcription":{"model":"m","language":null}},"output":{"voice":{"id":"v"},"speed":1.25}}}}"""


def secret(
    patch: SessionPatch | None = None, expires_at: int = NOW + 60, issuer: str = "web"
) -> ClientSecret:
    return ClientSecret(issuer, expires_at, BoundSession("m", patch or SessionPatch()))


def test_a_secret_comes_back_whole_with_nulls_and_absences() -> None:
    update = decode_command(EVERY_SETTING)
    assert isinstance(update, UpdateSession)
    for patch in (SessionPatch(), update.session):
        issued = secret(patch)
        assert SECRETS.read(SECRETS.issue(issued), NOW) == issued


def test_a_secret_fits_where_keys_travel() -> None:
    token = SECRETS.issue(
        secret(SessionPatch(instructions="Sei freundlich, \u00fc \U0001f600." * 9))
    )
    # Of the characters of a header and of a subprotocol (RFC 9110 section 5.6.2).
    assert re.fullmatch(r"ek_[A-Za-z0-9_-]+", token)
    assert is_client_secret(token)


@pytest.mark.parametrize(
    "key",
    ["", "sk-sesame", "ek_", "ek_anything", "ek_AQ", "ek_A\u00fc", "ek_" + "A" * 100, "AQ" * 99],
)
def test_other_keys_are_no_secrets(key: str) -> None:
    assert not is_client_secret(key)
    with pytest.raises(AuthError):
        SECRETS.read(key, NOW)


def test_it_opens_before_its_time_and_not_at_it() -> None:
    token = SECRETS.issue(secret(expires_at=NOW + 10))
    SECRETS.read(token, NOW + 9.999)
    with pytest.raises(AuthError) as caught:
        SECRETS.read(token, NOW + 10)
    assert caught.value.code == "client_secret_expired"
    with pytest.raises(AuthError, match="expired 90 s ago"):
        SECRETS.read(token, NOW + 100)


@given(st.data())
def test_any_change_makes_it_worthless(data: st.DataObject) -> None:
    token = SECRETS.issue(secret(SessionPatch(instructions="Be kind.")))
    at = data.draw(st.integers(0, len(token) - 2))  # the last character has bits that say nothing
    other = data.draw(st.sampled_from(string.ascii_letters + string.digits + "-_"))
    changed = token[:at] + other + token[at + 1 :]
    if changed != token:
        with pytest.raises(AuthError) as caught:
            SECRETS.read(changed, NOW)
        assert caught.value.code == "invalid_api_key"


def test_the_version_is_part_of_what_is_signed() -> None:
    blob = base64.urlsafe_b64decode(SECRETS.issue(secret())[3:] + "==")
    later = "ek_" + base64.urlsafe_b64encode(b"\x02" + blob[1:]).decode().rstrip("=")
    assert not is_client_secret(later)


def test_settings_that_fit_no_header_are_refused_with_the_limit() -> None:
    noise = "".join(random.Random(0).choices(string.ascii_letters, k=10_000))
    for text, limit in (
        (noise, MAX_SECRET_CHARS),
        ("a" * MAX_SESSION_BYTES, MAX_SESSION_BYTES),
    ):
        with pytest.raises(LimitExceeded, match=f"limit is {limit}") as caught:
            SECRETS.issue(secret(SessionPatch(instructions=text)))
        assert caught.value.param == "session"
    long = SECRETS.issue(secret(SessionPatch(instructions="Answer in one sentence. " * 2000)))
    assert len(long) < MAX_SECRET_CHARS
