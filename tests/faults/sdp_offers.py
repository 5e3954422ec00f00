"""Offers of WebRTC calls: real ones, as aiortc makes them, and what becomes of spoiled ones.

About a third is left as it was, so that calls begin. This module must not know what is right.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from aiortc import RTCConfiguration, RTCPeerConnection

BOUNDARY = "b0undary"
UNSPOILED = 0.3

_ODD_TEXTS = ("", " ", "\x00", "x" * 5000, "é", "-", "=", "m=audio 9 RTP/AVP 0", "a=candidate:")
_ODD_NUMBERS = ("-1", "0", "65536", "9" * 40, "1e9", "0x10")
_SESSIONS = (
    '{"type":"realtime","instructions":"Be kind."}',
    '{"type":"realtime","audio":{"output":{"voice":"two"}}}',
    '{"type":"realtime","audio":{"output":{"voice":7}}}',
    "{",
    "",
)


async def real_offers() -> list[str]:
    """Make one with a microphone, one that only listens, and one with a data channel alone."""
    return [await _offer(direction) for direction in ("sendrecv", "recvonly", None)]


async def _offer(audio: str | None) -> str:
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    connection.createDataChannel("oai-events")
    if audio is not None:
        connection.addTransceiver("audio", direction=audio)
    await connection.setLocalDescription(await connection.createOffer())
    sdp: str = connection.localDescription.sdp
    await connection.close()
    return sdp


class OfferMutator:
    """Spoils offers, and writes the requests that carry them."""

    def __init__(self, offers: Sequence[str], seed: int) -> None:
        self._offers = offers
        self._random = random.Random(seed)
        self._ways: tuple[Callable[[list[str]], None], ...] = (
            *(self._drop, self._double, self._swap, self._number, self._number, self._cut),
            *(self._text, self._flip, self._mix),
        )

    def request(self) -> tuple[str, bytes]:
        """Return the next one: its content type and its body."""
        sdp = self._random.choice(self._offers)
        if self._random.random() > UNSPOILED:
            lines = sdp.split("\r\n")
            for _ in range(self._random.choice((1, 1, 2, 5))):
                self._random.choice(self._ways)(lines)
            sdp = self._random.choice(("\r\n", "\r\n", "\r\n", "\n")).join(lines)
        body = sdp.encode()
        if self._random.random() < 0.5:
            return "application/sdp", body
        session = self._random.choice(_SESSIONS).encode()
        parts = ((b"sdp", body), (b"session", session))
        return f"multipart/form-data; boundary={BOUNDARY}", b"".join(
            b'--%b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'
            % (BOUNDARY.encode(), name, content)
            for name, content in parts
        ) + b"--%b--\r\n" % BOUNDARY.encode()

    def _at(self, lines: list[str]) -> int:
        return self._random.randrange(len(lines))

    def _drop(self, lines: list[str]) -> None:
        if len(lines) > 1:
            del lines[self._at(lines)]

    def _double(self, lines: list[str]) -> None:
        lines[self._at(lines) : 0] = [lines[self._at(lines)]] * self._random.choice((1, 1, 300))

    def _swap(self, lines: list[str]) -> None:
        one, other = self._at(lines), self._at(lines)
        lines[one], lines[other] = lines[other], lines[one]

    def _number(self, lines: list[str]) -> None:
        at = self._at(lines)
        found = list(re.finditer(r"\d+", lines[at]))
        if found:
            start, end = self._random.choice(found).span()
            odd = self._random.choice(_ODD_NUMBERS)
            lines[at] = lines[at][:start] + odd + lines[at][end:]

    def _cut(self, lines: list[str]) -> None:
        at = self._at(lines)
        lines[at] = lines[at][: self._random.randrange(len(lines[at]) + 1)]

    def _text(self, lines: list[str]) -> None:
        at = self._at(lines)
        lines[at] = lines[at][:2] + self._random.choice(_ODD_TEXTS)

    def _flip(self, lines: list[str]) -> None:
        at = self._at(lines)
        if lines[at]:
            place = self._random.randrange(len(lines[at]))
            odd = chr(self._random.randrange(1, 256))
            lines[at] = lines[at][:place] + odd + lines[at][place + 1 :]

    def _mix(self, lines: list[str]) -> None:
        other = self._random.choice(self._offers).split("\r\n")
        lines[self._at(lines) :] = other[self._at(other) :]
