"""A line to the gateway on which every event to the client is held against OpenAI's SDK.

Most clients pass over in silence what they do not know; so what they are sent is looked at, too.
What they say is counted by its type, since no client tells what it does by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from tests.conformance.sdk_schema import GA
from tests.fakes.breakable_line import breakable_line

_TEXT = 0x81
_HEAD_END = b"\r\n\r\n"
_ASKED = re.compile(rb"GET .*\r\nUpgrade: *websocket\r\n", re.DOTALL | re.IGNORECASE)
_TAKEN = re.compile(rb"HTTP/1\.1 101 ")


class FrameReader:
    """Reads what one side says on a connection: a head of HTTP, and then frames.

    Args:
        on_text: Told of each text message.
        head: What the head looks like where frames follow.
    """

    def __init__(self, on_text: Callable[[bytes], None], head: re.Pattern[bytes]) -> None:
        self._on_text = on_text
        self._head = head
        self._rest = bytearray()
        self._upgraded: bool | None = None

    def feed(self, piece: bytes) -> None:
        """Take the next bytes; those of a plain HTTP connection are passed over."""
        if self._upgraded is False:
            return
        self._rest += piece
        if self._upgraded is None and _HEAD_END in self._rest:
            head, _, rest = bytes(self._rest).partition(_HEAD_END)
            self._upgraded = self._head.match(head + _HEAD_END) is not None
            self._rest = bytearray(rest)
        while self._upgraded and (size := self._frame_size()) and len(self._rest) >= sum(size):
            start, length = size
            if self._rest[0] == _TEXT:
                content = bytes(self._rest[start : start + length])
                self._on_text(_unmasked(content, self._mask(start)))
            del self._rest[: start + length]

    def _mask(self, start: int) -> bytes:
        """Return what a client has mixed its content with, to be found before the content."""
        return bytes(self._rest[start - 4 : start]) if self._rest[1] & 0x80 else b""

    def _frame_size(self) -> tuple[int, int] | None:
        """Return how long the head and the content of the next frame are, once that is known."""
        if len(self._rest) < 2:
            return None
        length, mask = self._rest[1] & 0x7F, 4 if self._rest[1] & 0x80 else 0
        more = {126: 2, 127: 8}.get(length, 0)
        if len(self._rest) < 2 + more + mask:
            return None
        size = int.from_bytes(self._rest[2 : 2 + more], "big") if more else length
        return 2 + more + mask, size


def _unmasked(content: bytes, mask: bytes) -> bytes:
    if not mask:
        return content
    stream = (mask * (len(content) // 4 + 1))[: len(content)]
    mixed = int.from_bytes(content, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(len(content), "big")


@dataclass
class CheckedLine:
    """A line that is open."""

    url: str
    said: Counter[str] = field(default_factory=Counter)
    """How often the client sent events of each type."""

    def count(self, message: bytes) -> None:
        """Take an event of the client."""
        self.said[msgspec.json.decode(message)["type"]] += 1


@asynccontextmanager
async def checked_line(port: int) -> AsyncIterator[CheckedLine]:
    """Lead to a gateway; what came over the line is checked at the end."""
    messages: list[bytes] = []
    checked = CheckedLine("")

    def server_ear() -> Callable[[bytes], None]:
        return FrameReader(messages.append, _TAKEN).feed

    def client_ear() -> Callable[[bytes], None]:
        return FrameReader(checked.count, _ASKED).feed

    async with breakable_line(port, server_ear, client_ear) as line:
        checked.url = f"http://127.0.0.1:{line.port}"
        yield checked
    assert messages, "nobody called"
    for message in messages:
        GA.check(message)
