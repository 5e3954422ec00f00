from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.core.errors import AuthError
from duologue.gateway.keyring import Keyring
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.owners import Owner

SESAME = "open sesame"
NAMED = {
    "name": "kitchen",
    "key": SESAME,
    "max_sessions": 2,
    "max_requests": 5,
    "requests_per_minute": 30,
    "expires_at": "2023-11-14T22:13:20Z",
}
EXPIRES_AT = 1_700_000_000.0


def test_keys_have_the_names_and_limits_of_the_settings() -> None:
    keys = Keyring(GatewaySettings(api_keys=("one", "two"), named_keys=(NAMED,)))
    assert [key.owner for key in keys] == [
        Owner("key-1"),
        Owner("key-2"),
        Owner("kitchen", max_sessions=2, max_requests=5),
    ]
    assert keys.find("two", 0.0).owner.name == "key-2"
    kitchen = keys.find(SESAME, 0.0)
    assert (kitchen.requests_per_minute, kitchen.expires_at) == (30, EXPIRES_AT)
    assert not Keyring(GatewaySettings())


def test_a_key_is_not_shown() -> None:
    assert SESAME not in repr(list(Keyring(GatewaySettings(named_keys=(NAMED,)))))


@pytest.mark.parametrize("presented", [None, "", "on", "one ", "ONE", "kitchen", "\udcff"])
def test_another_key_is_nobodys(presented: str | None) -> None:
    with pytest.raises(AuthError):
        Keyring(GatewaySettings(api_keys=("one",), named_keys=(NAMED,))).find(presented, 0.0)


def test_a_key_that_expired_opens_nothing_and_nor_do_its_secrets() -> None:
    keys = Keyring(GatewaySettings(named_keys=(NAMED,)))
    assert keys.named("kitchen", EXPIRES_AT - 0.1) is keys.find(SESAME, EXPIRES_AT - 0.1)
    for attempt, what in ((keys.find, SESAME), (keys.named, "kitchen")):
        with pytest.raises(AuthError, match="expired"):
            attempt(what, EXPIRES_AT)
    with pytest.raises(AuthError, match="no longer valid"):
        keys.named("cellar", 0.0)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"named_keys": (NAMED, {"name": "kitchen", "key": "another one"})}, "kitchen"),
        ({"named_keys": ({"name": "key-1", "key": SESAME},), "api_keys": ("one",)}, "key-1"),
        ({"named_keys": (NAMED,), "api_keys": (SESAME,)}, "the same"),
        ({"named_keys": ({"name": "anybody", "key": SESAME},)}, "anybody"),
        ({"named_keys": ({"name": "Küche", "key": SESAME},)}, "pattern"),
        ({"named_keys": ({"name": "kitchen", "key": "short"},)}, "at least 8"),
        ({"named_keys": (NAMED | {"expires_at": "2023-11-14T22:13:20"},)}, "timezone"),
    ],
)
def test_keys_that_could_be_mistaken_are_refused_at_start(settings, complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        GatewaySettings(**settings)
