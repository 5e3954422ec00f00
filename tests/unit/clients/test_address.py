from __future__ import annotations

import pytest

from duologue.clients.address import is_loopback, realtime_url
from duologue.core.errors import ConfigError


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8080",
        "ws://localhost:8080",
        "http://localhost:8080/",
        "http://localhost:8080/v1",
        "WS://localhost:8080/v1/realtime",
        "  http://localhost:8080/v1/realtime ",
    ],
)
def test_one_server_has_many_spellings(address: str) -> None:
    assert realtime_url(address) == "ws://localhost:8080/v1/realtime"


def test_https_becomes_wss() -> None:
    assert realtime_url("https://voice.example") == "wss://voice.example/v1/realtime"


def test_a_path_and_a_query_are_kept() -> None:
    assert realtime_url("ws://h/call?a=1") == "ws://h/call?a=1"


def test_the_model_replaces_one_in_the_url() -> None:
    assert realtime_url("h:1/x?model=a&b=2", "c d") == "ws://h:1/x?b=2&model=c+d"


def test_the_duplex_dialect_is_asked_for_in_the_query() -> None:
    assert realtime_url("h:1", "m", duplex=True) == (
        "ws://h:1/v1/realtime?model=m&duplex=1&autostart=0"
    )
    assert realtime_url("h:1/v1/duplex?autostart=1", duplex=True) == (
        "ws://h:1/v1/duplex?duplex=1&autostart=0"
    )


@pytest.mark.parametrize(
    "address", ["", "ftp://h", "ws://", "ws://h:port", "ws://h:99999", "http:///v1/realtime"]
)
def test_what_is_no_address_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(ConfigError, match="ws://localhost:8080/v1/realtime"):
        realtime_url(address)


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("ws://localhost:1/v1", True),
        ("ws://127.0.0.1/v1", True),
        ("ws://127.8.9.1/v1", True),
        ("ws://[::1]:80/v1", True),
        ("ws://a.localhost/v1", True),
        ("ws://127.0.0.1.example.org/v1", False),
        ("ws://192.168.0.1/v1", False),
        ("ws://localhost.example.org/v1", False),
        ("ws://0x7f.1/v1", False),
    ],
)
def test_loopback_is_told_by_the_host_alone(url: str, here: bool) -> None:
    assert is_loopback(url) is here
