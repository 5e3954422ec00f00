from __future__ import annotations

import pytest
from multidict import CIMultiDict
from pydantic import SecretStr

from duologue.core.errors import AuthError
from duologue.gateway.auth import KEY_PROTOCOL, Access, presented_key
from duologue.gateway.settings import GatewaySettings
from duologue.protocol.errors import ErrorCode

HOST = {"Host": "voice.example:8080"}


def access(*keys: str, origins: tuple[str, ...] = ()) -> Access:
    secrets = tuple(SecretStr(key) for key in keys)
    return Access(GatewaySettings(api_keys=secrets, allowed_origins=origins))


def code_of(rules: Access, headers: dict[str, str], protocols: tuple[str, ...] = ()) -> str:
    with pytest.raises(AuthError) as caught:
        rules.check(CIMultiDict(HOST | headers), protocols)
    assert "sesame" not in str(caught.value)
    return caught.value.code


@pytest.mark.parametrize(
    ("headers", "protocols", "key"),
    [
        ({"Authorization": "Bearer sesame"}, (), "sesame"),
        ({"authorization": "bearer  sesame "}, (), "sesame"),
        ({"api-key": "sesame"}, (), "sesame"),
        ({"Api-Key": " sesame "}, (), "sesame"),
        ({}, ("realtime", f"{KEY_PROTOCOL}sesame"), "sesame"),
        ({"Authorization": "Bearer a", "api-key": "b"}, (f"{KEY_PROTOCOL}c",), "a"),
        ({"api-key": "b"}, (f"{KEY_PROTOCOL}c",), "b"),
        ({"Authorization": "Basic dXNlcjpwdw=="}, (f"{KEY_PROTOCOL}c",), "c"),
        ({"Authorization": "Bearer"}, (), None),
        ({"Authorization": "Bearer  "}, ("realtime",), None),
        ({}, (), None),
    ],
)
def test_a_key_is_found_wherever_clients_put_it_and_a_header_wins(
    headers: dict[str, str], protocols: tuple[str, ...], key: str | None
) -> None:
    assert presented_key(CIMultiDict(headers), protocols) == key


def test_everybody_comes_in_where_no_keys_are_set() -> None:
    access().check(CIMultiDict(HOST))
    access().check(CIMultiDict(HOST | {"Authorization": "Bearer whatever"}))


def test_any_of_the_keys_opens() -> None:
    rules = access("sesame", "mellon")
    for key in ("sesame", "mellon"):
        rules.check(CIMultiDict(HOST | {"Authorization": f"Bearer {key}"}))


@pytest.mark.parametrize("key", ["", "sesam", "sesame ", "SESAME", "sésame", "\udcff\udcfe"])
def test_anything_else_does_not(key: str) -> None:
    headers = {"Authorization": f"Bearer x{key}"}
    assert code_of(access("sesame"), headers) == ErrorCode.INVALID_API_KEY
    assert code_of(access("sesame"), {}) == ErrorCode.INVALID_API_KEY


def test_a_wrong_header_is_not_mended_by_a_right_subprotocol() -> None:
    wrong = {"Authorization": "Bearer wrong"}
    assert code_of(access("sesame"), wrong, (f"{KEY_PROTOCOL}sesame",)) == "invalid_api_key"


@pytest.mark.parametrize(
    "origin", ["http://voice.example:8080", "https://Voice.Example:8080", None]
)
def test_our_own_page_and_programs_come_in(origin: str | None) -> None:
    access().check(CIMultiDict(HOST | ({} if origin is None else {"Origin": origin})))


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://voice.example",
        "http://voice.example:8081",
        "http://voice.example:8080.evil.example",
        "null",
        "",
        "file://",
        "http://[broken",
        "voice.example:8080",
    ],
)
def test_pages_of_others_do_not_whatever_key_they_have(origin: str) -> None:
    headers = {"Origin": origin, "Authorization": "Bearer sesame"}
    assert code_of(access("sesame"), headers) == ErrorCode.ORIGIN_NOT_ALLOWED


def test_the_settings_let_pages_of_others_in() -> None:
    rules = access(origins=("https://app.example", "null"))
    for origin in ("https://app.example", "null"):
        rules.check(CIMultiDict(HOST | {"Origin": origin}))
    assert code_of(rules, {"Origin": "https://app.example:444"}) == "origin_not_allowed"
    access(origins=("*",)).check(CIMultiDict(HOST | {"Origin": "https://any.example"}))


def test_a_request_without_a_host_is_no_ones_own_page() -> None:
    assert not access().allows_page("null", "")
    assert not access().allows_page("http://", "")
