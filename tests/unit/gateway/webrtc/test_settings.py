from __future__ import annotations

import pytest
from pydantic import ValidationError

from duologue.gateway.webrtc.settings import IceServer, WebRtcSettings


def test_no_server_of_others_is_asked_unless_it_is_named() -> None:
    assert WebRtcSettings().ice_servers == ()


@pytest.mark.parametrize(
    "url",
    [
        "stun:stun.example.org",
        "stun:192.0.2.1:3478",
        "turn:example.org:3478?transport=tcp",
        "turns:example.org:5349",
    ],
)
def test_servers_are_written_as_browsers_write_them(url: str) -> None:
    assert IceServer(url=url).url == url


@pytest.mark.parametrize("url", ["", "http://example.org", "stun:", "stun:a b", "turn:a:port"])
def test_other_addresses_are_refused_at_the_start(url: str) -> None:
    with pytest.raises(ValidationError):
        IceServer(url=url)


@pytest.mark.parametrize("field", ["bind_address", "public_address"])
def test_addresses_are_numbers(field: str) -> None:
    assert getattr(WebRtcSettings(**{field: "192.0.2.1"}), field) == "192.0.2.1"
    with pytest.raises(ValidationError):
        WebRtcSettings(**{field: "example.org"})


def test_credentials_are_not_shown() -> None:
    server = IceServer(url="turn:example.org", username="u", credential="sesame")  # type: ignore[arg-type]
    assert "sesame" not in repr(server)
