"""A call over a WebSocket.

All that the ``websockets`` library raises is translated here. This module must not know what is
said in a call.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping, Sequence

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
    InvalidURI,
    WebSocketException,
)
from websockets.http11 import Response
from websockets.typing import Subprotocol

from duologue.clients.address import HOW_TO_START, is_loopback
from duologue.clients.errors import (
    NORMAL_CLOSURE,
    CallEnded,
    CallError,
    ConnectionLost,
    NotRealtimeServer,
    ServerUnreachable,
    SessionGone,
)
from duologue.clients.transports.base import Received
from duologue.core.errors import AuthError, CapacityError, ConfigError, DuologueError
from duologue.protocol.client_dialects import CLIENT_DIALECTS, ClientDialect, ClientFamily
from duologue.protocol.commands import Command
from duologue.protocol.dialect import Encoding
from duologue.protocol.errors import ErrorCode

MAX_MESSAGE_BYTES = 16 << 20
"""Ours sends a mebibyte at most; others put a minute of audio into one message."""

QUEUED_MESSAGES = 64
"""Messages that wait to be read before the server is held up."""

WRITE_LIMIT_BYTES = 64 * 1024
"""What waits in the transport before ``send`` waits; more would only be late."""

CLOSE_TIMEOUT_S = 2.0
ABNORMAL_CLOSURE = 1006

SUBPROTOCOLS: Mapping[Encoding, str] = {"msgpack": "realtime.msgpack", "json": "realtime"}
"""What is offered for each encoding; a server that selects none speaks JSON."""

_SHOWN_CHARS = 200

# The library logs each broken handshake; whoever calls us gets an exception instead.
_quiet = logging.getLogger("duologue.websockets")
_quiet.setLevel(logging.CRITICAL)


class WebSocketTransport:
    """An open WebSocket; see ``open``."""

    server_plays = False

    def __init__(self, connection: ClientConnection, dialect: ClientDialect) -> None:
        self.dialect = dialect
        """What is spoken on it."""

        self._connection = connection
        self._encode = dialect.encode_command
        self._decode = dialect.decode_event
        self._text = not dialect.binary

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        api_key: str | None = None,
        open_timeout_s: float = 10.0,
        family: ClientFamily = "realtime",
        encodings: Sequence[Encoding] = ("msgpack", "json"),
    ) -> WebSocketTransport:
        """Connect.

        Args:
            url: As ``realtime_url`` returns it.
            api_key: Sent as a bearer token.
            family: What the URL asks for.
            encodings: In the order of preference; the server chooses, JSON if it knows no other.

        Raises:
            ServerUnreachable: Nobody answers.
            AuthError: The key is missing or wrong.
            CapacityError: The server is full, or still starting.
            NotRealtimeServer: Who answers speaks something else.
        """
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        try:
            connection = await connect(
                url,
                additional_headers=headers,
                subprotocols=[Subprotocol(SUBPROTOCOLS[encoding]) for encoding in encodings],
                # Compression would cost more than all else, and audio does not shrink.
                compression=None,
                # A proxy of this machine's environment leads away from the machine.
                proxy=None if is_loopback(url) else True,
                open_timeout=open_timeout_s,
                close_timeout=CLOSE_TIMEOUT_S,
                max_size=MAX_MESSAGE_BYTES,
                max_queue=QUEUED_MESSAGES,
                write_limit=WRITE_LIMIT_BYTES,
                logger=_quiet,
            )
        except (OSError, WebSocketException) as exc:
            raise connect_error(exc, url, open_timeout_s) from exc
        is_msgpack = connection.subprotocol == SUBPROTOCOLS["msgpack"]
        return cls(connection, CLIENT_DIALECTS[family, "msgpack" if is_msgpack else "json"])

    async def send(self, command: Command) -> None:
        """Write one message."""
        try:
            await self._connection.send(self._encode(command), text=self._text)
        except ConnectionClosed as exc:
            raise close_error(exc) from exc

    async def receive(self) -> Received:
        """Read one message."""
        try:
            message = await self._connection.recv(decode=False)
        except ConnectionClosed as exc:
            raise close_error(exc) from exc
        return Received(*self._decode(message))

    async def close(self) -> None:
        """Say goodbye; the peer has ``CLOSE_TIMEOUT_S`` to answer."""
        await self._connection.close()

    def abort(self) -> None:
        """Drop the connection."""
        self._connection.transport.abort()


def connect_error(exc: Exception, url: str, open_timeout_s: float) -> DuologueError:
    """Return what a failed attempt to connect means."""
    match exc:
        case InvalidStatus(response=response):
            return status_error(response, url)
        case InvalidURI():
            return ConfigError(f"'{url[:_SHOWN_CHARS]}' is not the URL of a WebSocket")
        case TimeoutError():
            return ServerUnreachable(
                f"{url} did not answer within {open_timeout_s:g} s; is it the right address?"
            )
        case InvalidMessage() | InvalidHandshake():
            return NotRealtimeServer(
                f"something listens at {url}, but it does not speak WebSocket; "
                "is it the right port, and is it "
                + ("ws:// there?" if url.startswith("wss:") else "wss:// there?")
            )
        case ssl.SSLCertVerificationError(verify_message=why):
            return ServerUnreachable(
                f"{url} shows a certificate that is not trusted here ({why}). For one of "
                "duologue serve --tls dev set SSL_CERT_FILE to the file that the server names"
            )
        case OSError():
            return ServerUnreachable(
                f"nobody answers at {url} ({exc.strerror or exc}). {HOW_TO_START}"
            )
        case _:
            return NotRealtimeServer(f"the WebSocket at {url} could not be opened: {exc}")


def status_error(
    response: Response, url: str, instead_of: str = "opening a WebSocket"
) -> DuologueError:
    """Return what an HTTP answer means that is not the one which was hoped for."""
    status = response.status_code
    words = _words(response.body)
    said = words.message[:_SHOWN_CHARS]
    if words.code in _NOTHING_TO_GO_ON_WITH:
        return SessionGone(said, refused_with=words.code or "")
    match status:
        case 401 | 403:
            return AuthError(f"the server refuses the caller ({status}): {said or 'check the key'}")
        case 429 | 503:
            wait_s = _retry_after_s(response.headers)
            return CapacityError(
                f"the server takes no call now: {said or f'HTTP {status}'} "
                f"(wait {wait_s:g} s, then call again)",
                retry_after_s=wait_s,
            )
        case 404:
            return NotRealtimeServer(
                f"a web server answers at {url}, but it has no such page (404); "
                "a Duologue server has its calls at /v1/realtime"
            )
        case _:
            return NotRealtimeServer(
                f"{url} answered with HTTP {status} instead of {instead_of}"
                + (f": {said}" if said else "")
            )


def close_error(exc: ConnectionClosed) -> CallError:
    """Return what the end of a WebSocket means."""
    frame = exc.rcvd if exc.rcvd is not None else exc.sent
    if frame is None or frame.code == ABNORMAL_CLOSURE:
        return ConnectionLost("the connection to the server broke; call again")
    if exc.rcvd is None and frame.code != NORMAL_CLOSURE:
        # Our side closed it: a keepalive without an answer, or a message we cannot take.
        return ConnectionLost(f"the connection was given up: {frame.reason or frame.code}")
    if frame.code == NORMAL_CLOSURE:
        return CallEnded("the call is over")
    return CallEnded(
        f"the server ended the call ({frame.code}): {frame.reason or 'it gave no reason'}",
        close_code=frame.code,
    )


class _ErrorWords(msgspec.Struct):
    message: str = ""
    code: str | None = None


class _ErrorPage(msgspec.Struct):
    error: _ErrorWords


def _words(body: bytes | bytearray) -> _ErrorWords:
    """An error in the API's JSON form; empty for any other page."""
    try:
        return msgspec.json.decode(body, type=_ErrorPage).error
    except msgspec.MsgspecError:
        return _ErrorWords()


_NOTHING_TO_GO_ON_WITH = frozenset(
    (
        ErrorCode.INVALID_RESUME_TOKEN,
        ErrorCode.RESUME_CONFLICT,
        ErrorCode.RESUME_EXPIRED,
        ErrorCode.RESUME_UNSUPPORTED,
    )
)


_LONGEST_WAIT_DIGITS = 6


def _retry_after_s(headers: Mapping[str, str]) -> float:
    value = headers.get("Retry-After", "")
    is_number = value.isascii() and value.isdigit() and len(value) <= _LONGEST_WAIT_DIGITS
    return float(value) if is_number else 5.0
