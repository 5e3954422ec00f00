"""Where a server is: what people type becomes the URL of its Realtime endpoint.

This module must not open connections.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from duologue.core.errors import ConfigError
from duologue.core.installation import duologue_command

BASE_PATH = "/v1"
ENDPOINT_PATH = "/v1/realtime"
DEFAULT_URL = "ws://localhost:8080/v1/realtime"

_LOOPBACK_NAMES = ("localhost", "::1")
_SCHEMES = {"ws": "ws", "http": "ws", "wss": "wss", "https": "wss"}

HOW_TO_START = f"Start a server with: {duologue_command('serve')}"
"""For whoever finds nobody at an address."""


def realtime_url(address: str, model: str | None = None, *, duplex: bool = False) -> str:
    """Return the WebSocket URL for an address as people give it.

    ``localhost:8080``, ``http://localhost:8080/v1`` (the base URL of other clients) and
    ``ws://localhost:8080/v1/realtime`` are the same server. Any other path is kept, and so is a
    query.

    Args:
        duplex: Ask for the duplex dialect, in which the client speaks first.

    Raises:
        ConfigError: The address has no host, or a scheme that is neither WebSocket nor HTTP.
    """
    text = address.strip()
    parts = urlsplit(text if "://" in text else f"ws://{text}")
    scheme = _SCHEMES.get(parts.scheme.lower())
    if scheme is None or not parts.hostname or not _has_port(parts.netloc):
        raise ConfigError(
            f"'{address[:200]}' is not the address of a server; give one such as {DEFAULT_URL}"
        )
    query = parse_qsl(parts.query, keep_blank_values=True)
    if model is not None:
        query = [*((name, value) for name, value in query if name != "model"), ("model", model)]
    if duplex:
        asked = {"duplex": "1", "autostart": "0"}
        query = [*((name, value) for name, value in query if name not in asked), *asked.items()]
    path = ENDPOINT_PATH if parts.path.rstrip("/") in ("", BASE_PATH) else parts.path
    return urlunsplit((scheme, parts.netloc, path, urlencode(query), ""))


def is_loopback(url: str) -> bool:
    """Tell whether a URL leads to this machine, by its host alone; no name is looked up."""
    host = (urlsplit(url).hostname or "").lower()
    if host in _LOOPBACK_NAMES or host.endswith(".localhost"):
        return True
    octets = host.split(".")
    is_address = len(octets) == 4 and all(octet.isdigit() for octet in octets)
    return is_address and octets[0] == "127"


def _has_port(netloc: str) -> bool:
    """A port that is no number is only noticed when somebody asks for it."""
    try:
        urlsplit(f"//{netloc}").port  # noqa: B018  # the property checks
    except ValueError:
        return False
    return True
