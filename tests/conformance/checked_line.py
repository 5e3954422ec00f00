"""A line to the gateway on which every event to the client is held against OpenAI's SDK.

Most clients pass over in silence what they do not know; so what they are sent is looked at, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.conformance.sdk_schema import GA
from tests.fakes.breakable_line import breakable_line

_TEXT = 0x81
_HEAD_END = b"\r\n\r\n"


class FrameReader:
    """Reads what a server sends on one connection: an answer that upgrades it, and then frames.

    Args:
        on_text: Told of each text message.
    """

    def __init__(self, on_text: Callable[[bytes], None]) -> None:
        self._on_text = on_text
        self._rest = bytearray()
        self._upgraded: bool | None = None

    def feed(self, piece: bytes) -> None:
        """Take the next bytes; those of a plain HTTP connection are passed over."""
        if self._upgraded is False:
            return
        self._rest += piece
        if self._upgraded is None and _HEAD_END in self._rest:
            head, _, rest = bytes(self._rest).partition(_HEAD_END)
            self._upgraded = head.startswith(b"HTTP/1.1 101 ")
            self._rest = bytearray(rest)
        while self._upgraded and (size := self._frame_size()) and len(self._rest) >= sum(size):
            start, length = size
            if self._rest[0] == _TEXT:
                self._on_text(bytes(self._rest[start : start + length]))
            del self._rest[: start + length]

    def _frame_size(self) -> tuple[int, int] | None:
        """Return how long the head and the content of the next frame are, once that is known."""
        if len(self._rest) < 2:
            return None
        length = self._rest[1]
        more = {126: 2, 127: 8}.get(length, 0)
        if len(self._rest) < 2 + more:
            return None
        return 2 + more, int.from_bytes(self._rest[2 : 2 + more], "big") if more else length


@asynccontextmanager
async def checked_line(port: int) -> AsyncIterator[str]:
    """Return an address that leads to a gateway; what came over it is checked at the end."""
    messages: list[bytes] = []
    async with breakable_line(port, lambda: FrameReader(messages.append).feed) as line:
        yield f"http://127.0.0.1:{line.port}"
    assert messages, "nobody called"
    for message in messages:
        GA.check(message)
