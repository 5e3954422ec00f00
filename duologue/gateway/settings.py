"""Settings of the gateway: where it listens, who may come in, and how much they may send."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from duologue.config import Section
from duologue.gateway.http.settings import HttpSettings
from duologue.protocol.limits import MAX_MESSAGE_BYTES


class GatewaySettings(Section):
    """The server's edge."""

    host: str = "127.0.0.1"
    """Listen on this address; 0.0.0.0 for all of them. Browsers give a microphone only to
    localhost or HTTPS pages."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """0 takes any free port; the one taken is in the line that says ready."""

    api_keys: tuple[SecretStr, ...] = ()
    """Keys that clients must present one of; empty: everybody may come in."""

    signing_keys: tuple[SecretStr, ...] = ()
    """Keys that sign client secrets: the first signs, all are accepted. Servers that share them
    accept each other's secrets; empty: one is made at start, and secrets end with the server."""

    allowed_origins: tuple[str, ...] = ()
    """Web origins besides our own page's whose pages may connect, as ``https://example.org``;
    ``*`` for any."""

    dialects: tuple[Literal["beta", "duplex"], ...] = ("beta", "duplex")
    """Dialects that a client may ask for besides the plain one; others are refused."""

    max_message_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = MAX_MESSAGE_BYTES
    """Messages from a client must be smaller; 15 MiB of audio in base64 and their envelope fit."""

    http: HttpSettings = HttpSettings()
    """Plain HTTP requests."""

    heartbeat_s: Annotated[float, Field(gt=0)] = 20.0
    """A ping after so long without data from the client; it is gone after half as long again."""

    close_timeout_s: Annotated[float, Field(gt=0)] = 2.0
    """How long a client has to take our goodbye and to let go; then the connection is cut."""

    drain_timeout_s: Annotated[float, Field(ge=0)] = 20.0
    """After a request to stop, calls may go on for so long."""

    private_reader: bool = True
    """Read WebSocket messages by callback instead of aiohttp's ``receive``: a seventh less CPU for
    the whole server, through internals of aiohttp that are tried out at start. False uses public
    API alone."""
