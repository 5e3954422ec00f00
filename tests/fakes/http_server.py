"""A small HTTP server on this machine that answers as a test says, piece by piece."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Asked:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class FakeServer:
    """Where it listens and what it was asked.

    Args:
        hung_up: Set when a client has closed its connection before it had everything.
    """

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)


Answer = Callable[[Asked], "Reply"]


@dataclass
class Reply:
    """What comes back; ``pieces`` may wait for what the test does in between."""

    status: int = 200
    pieces: Iterable[bytes] = ()


@contextmanager
def serving(answer: Answer) -> Iterator[FakeServer]:
    """Serve in the background until the block ends."""
    fake = FakeServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.path, headers, self.rfile.read(length))
            fake.asked.append(asked)
            reply = answer(asked)
            self.send_response(reply.status)
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                for piece in reply.pieces:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                fake.hung_up.set()
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
