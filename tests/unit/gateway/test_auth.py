from __future__ import annotations

import pytest
from multidict import CIMultiDict
from pydantic import SecretStr

from duologue.core.errors import AuthError, RateLimited
from duologue.gateway.auth import KEY_PROTOCOL, Access, Caller, caller_id, presented_key
from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.settings import GatewaySettings
from duologue.protocol.errors import ErrorCode
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.owners import ANYBODY, Owner
from duologue.telemetry import LabelSets, Metrics
from tests.fakes.clock import WALL_START_S, FakeClock

KEY_1 = Owner("key-1")
HOST = {"Host": "voice.example:8080"}


def access(*keys: str, origins: tuple[str, ...] = ()) -> Access:
    secrets = tuple(SecretStr(key) for key in keys)
    return Access(
        GatewaySettings(api_keys=secrets, allowed_origins=origins),
        FakeClock(),
        Metrics(LabelSets()),
    )


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
        ({"Authorization": "Api-Key sesame"}, (), "sesame"),
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


# Client secrets

OLD, NEW = "old" * 6, "new" * 6
SESSION = BoundSession("echo", SessionPatch(instructions="Be kind."))


def server(
    *keys: str, signing: tuple[str, ...] = ("s" * 16,), clock: FakeClock | None = None
) -> Access:
    return Access(
        GatewaySettings(api_keys=keys, signing_keys=signing),
        clock or FakeClock(),
        Metrics(LabelSets()),
    )


def bearer(key: str) -> CIMultiDict[str]:
    return CIMultiDict(HOST | {"Authorization": f"Bearer {key}"})


def code_for(rules: Access, key: str) -> str:
    with pytest.raises(AuthError) as caught:
        rules.check_call(bearer(key))
    assert key not in str(caught.value)
    return caught.value.code


def test_a_secret_opens_calls_on_any_server_with_the_signing_key_until_it_expires() -> None:
    clock = FakeClock()
    issuing, other = server("sesame", clock=clock), server("sesame", clock=clock)
    caller = issuing.check(bearer("sesame"))
    secret, expires_at = issuing.issue(caller, SESSION, 60)
    assert expires_at == WALL_START_S + 60
    clock.advance(59.9)
    for _ in range(2):
        assert other.check_call(bearer(secret)) == Caller(KEY_1, SESSION)
    assert other.check_call(CIMultiDict(HOST), [f"{KEY_PROTOCOL}{secret}"]).session == SESSION
    clock.advance(0.2)
    assert code_for(other, secret) == "client_secret_expired"


def test_a_secret_opens_calls_and_nothing_else() -> None:
    rules = server("sesame")
    secret, _ = rules.issue(Caller(KEY_1), SESSION, 60)
    with pytest.raises(AuthError) as caught:
        rules.check(bearer(secret))
    assert caught.value.code == "api_key_not_allowed"


def test_a_secret_of_another_signing_key_does_not_and_an_older_key_of_ours_does() -> None:
    old = server("sesame", signing=(OLD,))
    secret, _ = old.issue(Caller(KEY_1), SESSION, 60)
    assert code_for(server("sesame", signing=(NEW,)), secret) == "invalid_api_key"
    assert code_for(server("sesame", signing=()), secret) == "invalid_api_key"
    both = server("sesame", signing=(NEW, OLD))
    assert both.check_call(bearer(secret)).session == SESSION


def test_a_secret_goes_with_the_key_that_issued_it() -> None:
    secret, _ = server("sesame", "mellon").issue(Caller(Owner("key-2")), SESSION, 60)
    assert code_for(server("sesame"), secret) == "invalid_api_key"
    assert code_for(server(), secret) == "invalid_api_key"


def test_without_keys_everybody_makes_secrets_and_only_genuine_ones_bind_a_session() -> None:
    rules = server()
    secret, _ = rules.issue(rules.check(CIMultiDict(HOST)), SESSION, 60)
    assert rules.check_call(bearer(secret)) == Caller(ANYBODY, SESSION)
    # There is nothing that it could be kept from.
    assert rules.check(bearer(secret)).owner == ANYBODY
    # A stock client of a browser cannot do without some key that looks like a secret.
    assert rules.check_call(bearer("ek_anything")) == Caller(ANYBODY)
    # One of ours that lost its meaning must not open a call without what it was bound to.
    assert code_for(server(signing=(NEW,)), secret) == "invalid_api_key"


# Limits, and keys in addresses

KITCHEN = {"name": "kitchen", "key": "open sesame", "requests_per_minute": 2, "max_sessions": 3}


def test_a_key_used_too_often_is_told_when_to_come_back_and_others_are_not() -> None:
    clock, metrics = FakeClock(), Metrics(LabelSets(keys=("kitchen", "key-1")))
    settings = GatewaySettings(api_keys=("mellon",), named_keys=(KITCHEN,))
    rules = Access(settings, clock, metrics)
    assert rules.check(bearer("open sesame")).owner == Owner("kitchen", max_sessions=3)
    secret, _ = rules.issue(Caller(Owner("kitchen")), SESSION, 60)
    rules.check_call(bearer(secret))
    for key in ("open sesame", secret):
        with pytest.raises(RateLimited) as caught:
            rules.check_call(bearer(key))
        assert (caught.value.code, caught.value.retry_after_s) == ("rate_limited", 30.0)
    for _ in range(9):
        rules.check(bearer("mellon"))
    clock.advance(30)
    rules.check(bearer("open sesame"))
    assert metrics.key_requests["kitchen"].value == 3
    assert metrics.key_refused["kitchen"].value == 2
    assert metrics.key_requests["key-1"].value == 9


@pytest.mark.parametrize(
    "query", ["api_key=sesame", "duplex=1&api_key=sesame", "a=b?api_key=sesame"]
)
def test_a_key_in_the_address_opens_only_where_it_is_allowed_to(query: str) -> None:
    headers = CIMultiDict(HOST)
    for settings in (GatewaySettings(api_keys=("sesame",)), GatewaySettings()):
        with pytest.raises(AuthError, match="query_keys") as caught:
            Access(settings, FakeClock(), Metrics(LabelSets())).check(headers, (), query)
        assert "sesame" not in str(caught.value)
    settings = GatewaySettings(api_keys=("sesame",), query_keys=True)
    rules = Access(settings, FakeClock(), Metrics(LabelSets()))
    assert rules.check(headers, (), query).owner == KEY_1
    wrong = CIMultiDict(HOST | {"api-key": "wrong"})
    with pytest.raises(AuthError):
        rules.check(wrong, (), query)


def test_a_caller_is_the_same_wherever_his_key_is_and_another_is_another() -> None:
    me = caller_id({"Authorization": "Bearer sesame"}, (), "")
    assert "sesame" not in me
    assert caller_id({}, (f"{KEY_PROTOCOL}sesame",), "") == me
    assert caller_id({}, (), "api_key=sesame") == caller_id({}, (), "a=b?api_key=sesame") == me
    assert caller_id({"api-key": "sesame"}, (), "api_key=mellon") == me
    others = {caller_id({}, (), query) for query in ("api_key=mellon", "api_key=other", "")}
    assert len(others | {me}) == 4
    assert caller_id({"api-key": "\udcff"}, (), "") not in others
