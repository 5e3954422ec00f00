"""How the connection of a call is opened, by the name of its transport.

This module must not know what is said in a call.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from duologue.clients.address import realtime_url
from duologue.clients.reconnect.doors import ByAddress, FirstMessage
from duologue.clients.reconnect.policy import ReconnectPolicy
from duologue.clients.reconnect.transport import ReconnectingTransport
from duologue.clients.track import TrackLabels
from duologue.clients.transports.base import OpenTransport, Transport
from duologue.clients.transports.websocket import WebSocketTransport
from duologue.core.clock import Clock
from duologue.core.errors import ConfigError
from duologue.core.installation import install_command
from duologue.protocol.client_dialects import ClientFamily
from duologue.protocol.dialect import Encoding

TransportName: TypeAlias = Literal["websocket", "webrtc"]


def opener(
    address: str,
    *,
    transport: TransportName,
    api_key: str | None,
    model: str | None,
    dialect: ClientFamily,
    encodings: Sequence[Encoding],
    timeout_s: float,
    clock: Clock,
    reconnect: ReconnectPolicy | None = None,
) -> OpenTransport:
    """Return what opens a connection.

    Args:
        reconnect: What is done about a lost connection; ``None``: the call ends with it.

    Raises:
        ConfigError: The address is none, or the transport cannot do what is asked.
    """
    if transport == "webrtc":
        return _webrtc(address, api_key, model, dialect, timeout_s, clock, reconnect)
    url = realtime_url(address, model, duplex=dialect == "duplex")

    async def open_websocket(query: str = "") -> Transport:
        return await WebSocketTransport.open(
            url + query,
            api_key=api_key,
            open_timeout_s=timeout_s,
            family=dialect,
            encodings=encodings,
        )

    if dialect != "duplex" or reconnect is None:
        return open_websocket
    # Somebody who comes back is let in where the server is full.
    door = FirstMessage(lambda: open_websocket("&resume=1"))

    async def open_and_return() -> Transport:
        first = await open_websocket()
        return ReconnectingTransport(first, door, reconnect, clock, random.Random())

    return open_and_return


def calls_url(address: str, model: str | None = None) -> str:
    """Return the URL to which WebRTC offers are posted, for an address as people give it.

    Raises:
        ConfigError: The address is none.
    """
    scheme, place, path, query, _ = urlsplit(realtime_url(address, model))
    path = path.rstrip("/")
    if not path.endswith("/calls"):
        path += "/calls"
    return urlunsplit(("https" if scheme == "wss" else "http", place, path, query, ""))


def _webrtc(
    address: str,
    api_key: str | None,
    model: str | None,
    dialect: ClientFamily,
    timeout_s: float,
    clock: Clock,
    reconnect: ReconnectPolicy | None,
) -> OpenTransport:
    if dialect == "duplex":
        raise ConfigError("the duplex dialect is spoken over WebSocket: leave out the one or other")
    url = calls_url(address, model)
    try:
        from duologue.clients.transports.webrtc import WebRtcTransport
    except ImportError as exc:
        raise ConfigError(
            f"calls over WebRTC need more packages: {install_command('duologue[webrtc]')}"
        ) from exc

    labels = TrackLabels()

    async def open_webrtc(**query: str) -> Transport:
        return await WebRtcTransport.open(
            with_query(url, query), api_key=api_key, open_timeout_s=timeout_s, labels=labels
        )

    if reconnect is None:
        return open_webrtc
    policy = reconnect

    async def reopen(session_id: str, token: str) -> Transport:
        return await open_webrtc(session_id=session_id, resume_token=token)

    async def open_and_return() -> Transport:
        first = await open_webrtc(resumable="1")
        return ReconnectingTransport(first, ByAddress(reopen), policy, clock, random.Random())

    return open_and_return


def with_query(url: str, more: Mapping[str, str]) -> str:
    """Return a URL with more in its query."""
    scheme, place, path, query, _ = urlsplit(url)
    pairs = [*parse_qsl(query, keep_blank_values=True), *more.items()]
    return urlunsplit((scheme, place, path, urlencode(pairs), ""))
