from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from duologue.composition.directories import (
    configured_directory,
    gateway_context,
    host_context,
    link_secret,
)
from duologue.core.errors import ConfigError
from duologue.hosts.settings import HostsSettings

SECRET = SecretStr("a secret of two machines")
URL = SecretStr("redis://127.0.0.1:1/0")


def test_without_an_address_there_is_none() -> None:
    assert configured_directory(HostsSettings()) is None
    assert link_secret(HostsSettings()) == b""
    assert link_secret(HostsSettings(link_secret=SECRET)) == b"a secret of two machines"


def test_links_that_leave_the_machine_need_a_secret() -> None:
    with pytest.raises(ConfigError, match="link_secret"):
        configured_directory(HostsSettings(directory_url=URL))


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "duologue.hosts.redis_directory", raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ConfigError, match=r"duologue\[redis\]"):
        configured_directory(HostsSettings(directory_url=URL, link_secret=SECRET))


def test_links_are_encrypted_where_there_is_a_certificate(tmp_path: Path) -> None:
    assert host_context(HostsSettings()) is None
    assert gateway_context(HostsSettings()) is None
    absent = tmp_path / "absent.pem"
    with pytest.raises(ConfigError, match="belong together"):
        host_context(HostsSettings(link_certificate=absent))
    with pytest.raises(ConfigError, match="link_certificate"):
        host_context(HostsSettings(link_certificate=absent, link_key=absent))
    with pytest.raises(ConfigError, match="link_ca"):
        gateway_context(HostsSettings(link_ca=absent))
