"""One HTTP POST whose answer is read as it comes, and which another thread can break off.

Blocking, for runners with threads of their own; standard library only. This module must not know
what is asked or answered.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

from duologue.core.errors import ConfigError, EngineError, StageTimeout

_READ_BYTES = 16 * 1024
_LONGEST_COMPLAINT_CHARS = 300
_LONGEST_LINE_BYTES = 1024 * 1024
_CODES = {401: "upstream_denied", 403: "upstream_denied", 404: "upstream_not_found"}
_BUSY = "upstream_busy"
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server.

    Args:
        base_url: Up to and with the version, as ``https://host/v1``.
        api_key: Sent as a bearer token where it is not empty. Never shown.
        connect_timeout_s: To reach the server.
        silence_timeout_s: Longest wait for the next byte of an answer.
    """

    base_url: str
    api_key: str
    connect_timeout_s: float
    silence_timeout_s: float

    def __repr__(self) -> str:
        return f"Upstream({self.base_url!r})"

    def check(self) -> None:
        """Refuse what can never be reached.

        Raises:
            ConfigError: The URL is none.
        """
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"base_url is {self.base_url!r}; it must be like http://127.0.0.1:8000/v1"
            )


def read_api_key(path: str) -> str:
    """Return the key that a file holds; no path, no key.

    Raises:
        ConfigError: The file cannot be read.
    """
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as exc:
        raise ConfigError(f"api_key_file {path}: {exc.strerror}") from exc


class HttpPost:
    """One request and its answer.

    Concurrency:
        One thread calls ``chunks`` or ``lines``; ``abort`` may come from any.
    """

    def __init__(
        self, upstream: Upstream, path: str, body: bytes, content_type: str = "application/json"
    ) -> None:
        self._upstream = upstream
        self._path = path
        self._body = body
        self._content_type = content_type
        self._connection: HTTPConnection | None = None
        # The connection forgets its socket once the server has said that it will close it.
        self._socket: socket.socket | None = None
        self._aborted = False

    def abort(self) -> None:
        """Close the connection; the reader sees the end of the answer."""
        self._aborted = True
        if self._socket is not None:
            with suppress(OSError):
                # Closed without a farewell, so that a server whose answer is stuck on its way
                # learns of it too.
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
                self._socket.shutdown(socket.SHUT_RDWR)

    def chunks(self) -> Iterator[bytes]:
        """Send the request; yield the answer's bytes as they come.

        Raises:
            EngineError: The server cannot be reached, refuses, or breaks off.
            StageTimeout: It is silent for too long.
        """
        host = urlsplit(self._upstream.base_url).netloc.rpartition("@")[2]
        try:
            response = self._send()
            if response.status != 200:
                raise self._refusal(response, host)
            while data := response.read1(_READ_BYTES):
                yield data
        except TimeoutError as exc:
            raise StageTimeout(f"{host} did not answer in time", quote=str(exc)) from exc
        except (OSError, HTTPException) as exc:
            if not self._aborted:
                why = getattr(exc, "strerror", None) or type(exc).__name__
                raise EngineError(
                    f"{host} cannot be reached: {why}. base_url of the stage names it",
                    code="upstream_unreachable",
                    quote=str(exc),
                ) from exc
        finally:
            if self._connection is not None:
                self._connection.close()

    def lines(self) -> Iterator[bytes]:
        """As ``chunks``, cut at line ends, which are dropped."""
        rest = b""
        for data in self.chunks():
            *whole, rest = (rest + data).split(b"\n")
            if len(rest) > _LONGEST_LINE_BYTES:
                raise EngineError(f"a line of an answer is longer than {_LONGEST_LINE_BYTES} bytes")
            yield from (line.rstrip(b"\r") for line in whole)
        if rest:
            yield rest

    def _send(self) -> HTTPResponse:
        upstream = self._upstream
        parts = urlsplit(upstream.base_url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        assert parts.hostname is not None
        connection = kind(parts.hostname, parts.port, timeout=upstream.connect_timeout_s)
        self._connection = connection
        connection.connect()
        self._socket = connection.sock
        if self._aborted:
            raise ConnectionAbortedError("no longer wanted")
        self._socket.settimeout(upstream.silence_timeout_s)
        headers = {"Content-Type": self._content_type, "Accept": "*/*"}
        if upstream.api_key:
            headers["Authorization"] = f"Bearer {upstream.api_key}"
        connection.request("POST", self._full_path(), self._body, headers)
        return connection.getresponse()

    def _full_path(self) -> str:
        return f"{urlsplit(self._upstream.base_url).path.rstrip('/')}{self._path}"

    def _refusal(self, response: HTTPResponse, host: str) -> EngineError:
        said = response.read(_READ_BYTES).decode("utf-8", "replace")[:_LONGEST_COMPLAINT_CHARS]
        busy = response.status == 429 or response.status == 503
        code = _BUSY if busy else _CODES.get(response.status, "upstream_failed")
        return EngineError(
            f"{host} answered POST {self._full_path()} with {response.status}",
            code=code,
            quote=said,
        )
