from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from duologue.gateway.telephony.signature import is_signed, signature

TOKEN = b"12345"
URL = "https://mycompany.com/myapp.php?foo=1&bar=2"
FIELDS = {
    "To": "+18005551212",
    "CallSid": "CA1234567890ABCDE",
    "Caller": "+14158675310",
    "Digits": "1234",
    "From": "+14158675310",
}
SIGNED = f"{URL}CallSidCA1234567890ABCDECaller+14158675310Digits1234From+14158675310To+18005551212"
"""The documented way: the address, then the fields in the order of their names."""

GOOD = base64.b64encode(hmac.new(TOKEN, SIGNED.encode(), hashlib.sha1).digest()).decode()


def test_the_documented_example() -> None:
    assert signature(TOKEN, URL, FIELDS.items()) == GOOD


def test_one_of_several_addresses_is_enough() -> None:
    urls = ["http://inside:8080/", URL]
    assert is_signed(TOKEN, GOOD, urls, FIELDS.items())
    assert not is_signed(TOKEN, GOOD, urls[:1], FIELDS.items())
    assert not is_signed(TOKEN, GOOD, [], FIELDS.items())


@pytest.mark.parametrize("given", ["", "A" * 28, GOOD.lower(), "\udcff", "ü"])
def test_another_signature_is_none(given: str) -> None:
    assert not is_signed(TOKEN, given, [URL], FIELDS.items())


def test_a_changed_field_breaks_it() -> None:
    changed = FIELDS | {"Digits": "1235"}
    assert not is_signed(TOKEN, GOOD, [URL], changed.items())
