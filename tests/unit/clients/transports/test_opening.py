from __future__ import annotations

import sys

import pytest

from duologue.clients.transports.opening import TransportName, calls_url, opener, with_query
from duologue.core.clock import SystemClock
from duologue.core.errors import ConfigError
from duologue.protocol.client_dialects import ClientFamily


def wanted(transport: TransportName, dialect: ClientFamily = "realtime") -> object:
    return opener(
        "localhost:8080",
        transport=transport,
        api_key=None,
        model=None,
        dialect=dialect,
        encodings=("json",),
        timeout_s=1.0,
        clock=SystemClock(),
    )


def test_offers_are_posted_beside_the_websocket() -> None:
    assert calls_url("localhost:8080") == "http://localhost:8080/v1/realtime/calls"
    assert calls_url("wss://h/v1/realtime/calls", "m") == "https://h/v1/realtime/calls?model=m"


def test_what_is_asked_for_stands_in_the_query() -> None:
    url = "http://h/v1/realtime/calls?model=m"
    assert with_query(url, {}) == url
    assert with_query(url, {"resumable": "1"}) == f"{url}&resumable=1"


def test_the_duplex_dialect_needs_a_websocket() -> None:
    assert callable(wanted("websocket", "duplex"))
    with pytest.raises(ConfigError, match="WebSocket"):
        wanted("webrtc", "duplex")


def test_without_the_packages_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duologue.clients.transports.webrtc", None)
    with pytest.raises(ConfigError, match=r"duologue\[webrtc\]"):
        wanted("webrtc")


def test_an_address_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ConfigError):
        calls_url("ftp://h")
