from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request

from duologue.gateway.telephony.settings import TelephonySettings
from duologue.gateway.telephony.signature import HEADER, signature
from duologue.gateway.telephony.signed import TwilioRequests

TOKEN = "token of the account"
PATH = "/v1/telephony/twilio/stream"
OUTSIDE = "https://voice.example.org"


def request(url: str, headers: dict[str, str] | None = None, path: str = PATH):
    signed = {HEADER: signature(TOKEN.encode(), url)}
    return make_mocked_request("GET", path, {"Host": "inside:8080", **signed, **(headers or {})})


def requests(**settings: object) -> TwilioRequests:
    return TwilioRequests(TelephonySettings(twilio_auth_token=TOKEN, **settings))


@pytest.mark.parametrize(
    "url",
    [
        f"wss://inside:8080{PATH}",
        f"https://inside:8080{PATH}",
        f"http://inside:8080{PATH}",
        f"wss://inside:8080{PATH}/",
    ],
)
def test_any_address_that_may_be_ours_counts(url: str) -> None:
    assert requests().is_signed(request(url))


def test_behind_a_proxy_the_address_of_the_settings_counts() -> None:
    ours = requests(public_url=OUTSIDE)
    assert ours.is_signed(request(f"wss://voice.example.org{PATH}"))
    assert not ours.is_signed(request(f"wss://inside:8080{PATH}"))
    query = f"{PATH}?a=b%20c"
    assert ours.is_signed(request(f"wss://voice.example.org{query}", path=query))


def test_other_addresses_missing_signatures_and_no_token_do_not() -> None:
    assert not requests().is_signed(request(f"wss://other:8080{PATH}"))
    unsigned = make_mocked_request("GET", PATH, {"Host": "inside:8080"})
    assert not requests().is_signed(unsigned)
    without = TwilioRequests(TelephonySettings())
    assert not without.are_signed
    assert not without.is_signed(request(f"wss://inside:8080{PATH}"))


def test_the_address_that_others_know_us_by() -> None:
    plain = make_mocked_request("GET", PATH, {"Host": "inside:8080"})
    assert requests().base_url(plain) == "http://inside:8080"
    behind = make_mocked_request("GET", PATH, {"Host": "v.example", "X-Forwarded-Proto": "https"})
    assert requests().base_url(behind) == "https://v.example"
    odd = make_mocked_request("GET", PATH, {"Host": "v.example", "X-Forwarded-Proto": 'x"><'})
    assert requests().base_url(odd) == "http://v.example"
    assert requests(public_url=OUTSIDE).base_url(plain) == OUTSIDE
