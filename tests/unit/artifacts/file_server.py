"""An HTTP server on loopback that can do what servers and networks do to a download."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.patience import PATIENCE_S


@dataclass
class Misbehaviour:
    """What happens to one request; the next one of the same path meets the next in line."""

    status: int | None = None
    cut_after_bytes: int | None = None
    ignores_range: bool = False
    waits_for: threading.Event | None = None


@dataclass
class FileServer:
    """Serves ``files`` by path, honours ranges, and keeps a log of what was asked."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    misbehaves: dict[str, list[Misbehaviour]] = field(default_factory=lambda: defaultdict(list))
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Path and range ("" for the whole file) of each request, in order."""

    def add(self, path: str, content: bytes) -> str:
        self.files[path] = content
        return self.url + path

    def ranges_of(self, path: str) -> list[str]:
        return [asked_range for asked_path, asked_range in self.asked if asked_path == path]


@contextmanager
def serving() -> Iterator[FileServer]:
    http_server = _Server(("127.0.0.1", 0), _Handler)
    server = http_server.content = FileServer(f"http://127.0.0.1:{http_server.server_address[1]}")
    thread = threading.Thread(
        target=http_server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        http_server.shutdown()
        http_server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    content: FileServer

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that stops may hang up
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_HEAD(self) -> None:
        self._answer(has_body=False)

    def do_GET(self) -> None:
        self._answer(has_body=True)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, has_body: bool) -> None:
        server = self.server.content
        asked_range = self.headers.get("Range", "")
        server.asked.append((self.path, asked_range))
        waiting = server.misbehaves.get(self.path)
        bad = waiting.pop(0) if waiting else Misbehaviour()
        if bad.waits_for is not None:
            bad.waits_for.wait(PATIENCE_S)
        content = server.files.get(self.path)
        status = bad.status or (200 if content is not None else 404)
        if status != 200 or content is None:
            self._send(status, {}, b"", has_body)
            return
        kind = "text/html" if self.path.endswith("/") else "application/octet-stream"
        headers = {"Content-Type": kind, "Accept-Ranges": "bytes"}
        if asked_range and not bad.ignores_range:
            first, last = _bounds(asked_range, len(content))
            if first >= len(content):
                self._send(416, {"Content-Range": f"bytes */{len(content)}"}, b"", has_body)
                return
            headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            status, content = 206, content[first : last + 1]
        self._send(status, headers, content, has_body, bad.cut_after_bytes)

    def _send(
        self,
        status: int,
        headers: dict[str, str],
        body: bytes,
        has_body: bool,
        cut_after_bytes: int | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if has_body:
            self.wfile.write(body[:cut_after_bytes])
        if cut_after_bytes is not None:
            self.close_connection = True


def _bounds(asked_range: str, length: int) -> tuple[int, int]:
    first, _, last = asked_range.removeprefix("bytes=").partition("-")
    if not first:
        return max(length - int(last), 0), length - 1
    return int(first), min(int(last), length - 1) if last else length - 1
