from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request
from pydantic import SecretStr

from duologue.core.clock import SystemClock
from duologue.core.errors import AuthError, ClientError
from duologue.gateway.admin.key import AdminKey
from duologue.gateway.auth import Access
from duologue.gateway.settings import GatewaySettings
from duologue.telemetry import LabelSets, Metrics


def admin_key(key: str | None = "open-sesame") -> AdminKey:
    secret = None if key is None else SecretStr(key)
    settings = GatewaySettings(admin_key=secret, api_keys=("key-of-others",))
    return AdminKey(Access(settings, SystemClock(), Metrics(LabelSets())), settings)


async def test_who_has_it_is_let_through() -> None:
    request = make_mocked_request("GET", "/", {"Authorization": "Bearer open-sesame"})
    admin_key().check(request)


@pytest.mark.parametrize("given", [{}, {"Authorization": "Bearer key-of-others"}], ids=str)
async def test_others_are_not(given: dict[str, str]) -> None:
    with pytest.raises(AuthError, match="admin key"):
        admin_key().check(make_mocked_request("GET", "/", given))


async def test_without_one_nothing_is_opened() -> None:
    assert admin_key()
    assert not admin_key(None)
    request = make_mocked_request("GET", "/", {"Authorization": "Bearer "})
    with pytest.raises(AuthError):
        admin_key(None).check(request)


async def test_pages_from_elsewhere_are_refused_with_the_key() -> None:
    headers = {"Authorization": "Bearer open-sesame", "Origin": "https://elsewhere.example"}
    with pytest.raises(ClientError):
        admin_key().check(make_mocked_request("GET", "/", headers))
