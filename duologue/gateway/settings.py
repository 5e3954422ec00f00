"""Settings of the gateway: where it listens, who may come in, and how much they may send."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Self, get_args

from pydantic import AwareDatetime, Field, SecretStr, model_validator

from duologue.config import Section
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.robot.settings import RobotSettings
from duologue.gateway.telephony.settings import TelephonySettings
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.protocol.dialect import OnRequest
from duologue.protocol.limits import MAX_MESSAGE_BYTES

NOT_KEYS = ("anybody", "telephony")
"""Names of owners of sessions that need no key."""


class ApiKeySettings(Section):
    """A key with a name and limits of its own."""

    name: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,63}$")]
    """Stands for the key in figures and logs."""

    key: Annotated[SecretStr, Field(min_length=8)]
    """What clients present."""

    max_sessions: Annotated[int, Field(ge=1)] | None = None
    """Calls that may go on at once with this key and its client secrets."""

    max_requests: Annotated[int, Field(ge=1)] | None = None
    """Plain HTTP requests of this key that may be worked on at a time."""

    max_jobs: Annotated[int, Field(ge=1)] | None = None
    """Jobs of this key, as videos, that may wait or be worked on."""

    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    """Requests with this key and its client secrets: as many at once, and as many per minute."""

    expires_at: AwareDatetime | None = None
    """After this moment it opens nothing, as ``2027-01-31T00:00:00Z``."""


class TlsSettings(Section):
    """The certificate, for https:// and wss://; without one the server speaks http:// and ws://."""

    dev: bool = False
    """Make a certificate for development and use it; ``duologue serve --tls dev`` is the same.
    Clients must be told to trust it."""

    certificate: Path | None = None
    """PEM file with the certificate and those that lead up to its authority. SIGHUP reads it
    again."""

    key: Path | None = None
    """PEM file with its private key, without a password."""

    handshake_timeout_s: Annotated[float, Field(gt=0, le=60)] = 10.0
    """A connection whose TLS handshake is not over after so long is dropped."""

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key belong together; give both")
        if self.dev and self.certificate is not None:
            raise ValueError("dev makes a certificate: leave it out, or certificate and key")
        return self


class GatewaySettings(Section):
    """The server's edge."""

    host: str = "127.0.0.1"
    """Listen on this address; 0.0.0.0 for all of them. Browsers give a microphone only to
    localhost or HTTPS pages, see tls."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """0 takes any free port; the one taken is in the line that says ready."""

    wyoming_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """Port where Home Assistant asks for speech and transcription (usually 10300), on the same
    address; it knows no keys. None: there is none."""

    tls: TlsSettings = TlsSettings()

    telephony: TelephonySettings = TelephonySettings()

    api_keys: tuple[SecretStr, ...] = ()
    """Keys that clients must present one of; empty: everybody may come in."""

    named_keys: tuple[ApiKeySettings, ...] = ()
    """Further keys, with names and limits."""

    admin_key: Annotated[SecretStr, Field(min_length=8)] | None = None
    """Opens /debug/sessions and the dashboard at /debug, which show open sessions without content,
    and /v1/omni, by which stages sleep, wake and are paused. None: there is none of them."""

    query_keys: bool = False
    """Take a key from ``?api_key=`` of the address too, for clients that can send it nowhere else.
    Addresses stand in the logs of proxies."""

    signing_keys: tuple[Annotated[SecretStr, Field(min_length=16)], ...] = ()
    """Keys that sign client secrets: the first signs, all are accepted. Servers that share them
    accept each other's secrets; empty: one is made at start, and secrets end with the server."""

    allowed_origins: tuple[str, ...] = ()
    """Web origins besides our own page's whose pages may connect, as ``https://example.org``;
    ``*`` for any."""

    dialects: tuple[OnRequest, ...] = get_args(OnRequest)
    """Dialects that a client may ask for besides the plain one; others are refused."""

    first_message_timeout_s: Annotated[float, Field(gt=0)] = 10.0
    """A client of the duplex dialect that does not say within this time what its session is to be
    like is let go."""

    queued_calls: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Calls over WebSocket that may wait for a place, where their clients ask for it with
    ``?queue=1``; 0: all are refused that find none."""

    queue_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """A call that has waited so long is refused after all."""

    max_message_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = MAX_MESSAGE_BYTES
    """Messages from a client must be smaller; 15 MiB of audio in base64 and their envelope fit."""

    http: HttpSettings = HttpSettings()
    """Plain HTTP requests."""

    robot: RobotSettings = RobotSettings()

    heartbeat_s: Annotated[float, Field(gt=0)] = 20.0
    """A ping after so long without data from the client; it is gone after half as long again."""

    close_timeout_s: Annotated[float, Field(gt=0)] = 2.0
    """How long a client has to take our goodbye and to let go; then the connection is cut."""

    drain_timeout_s: Annotated[float, Field(ge=0)] = 20.0
    """After a request to stop, calls may go on for so long."""

    webrtc: WebRtcSettings = WebRtcSettings()
    """Calls over WebRTC."""

    private_reader: bool = True
    """Read WebSocket messages by callback instead of aiohttp's ``receive``: a seventh less CPU for
    the whole server, through internals of aiohttp that are tried out at start. False uses public
    API alone."""

    def plain_keys(self) -> Iterator[tuple[str, SecretStr]]:
        """The keys without a name, with the name by which each is known."""
        for number, key in enumerate(self.api_keys, 1):
            yield f"key-{number}", key

    def key_names(self) -> tuple[str, ...]:
        """Names of all keys."""
        plain = (name for name, _ in self.plain_keys())
        return (*plain, *(named.name for named in self.named_keys))

    @model_validator(mode="after")
    def _keys_can_be_told_apart(self) -> Self:
        names = (*NOT_KEYS, *self.key_names())
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two keys are called {twice[0]}; give each a name of its own")
        values = [key.get_secret_value() for key in self.api_keys]
        values += [named.key.get_secret_value() for named in self.named_keys]
        if len(set(values)) != len(values):
            raise ValueError("two API keys are the same")
        return self
