"""A peer connection without a network: a test sees what is sent, and says what comes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from duologue.core.errors import ClientError
from duologue.gateway.webrtc.offer import Offer
from duologue.gateway.webrtc.peer import Backend, PeerListener

ANSWER = "v=0\r\na=the answer\r\n"


class FakePeer:
    """A ``Peer``. The data channel takes everything, unless it is ``stuck``."""

    def __init__(self, listener: PeerListener) -> None:
        self.listener = listener
        self.messages: list[bytes] = []
        self.audio: list[tuple[bytes, int]] = []
        """Payloads and timestamps."""
        self.stuck = False
        self.closed = 0
        self.refuse: ClientError | None = None

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(message) for message in self.messages]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def of(self, *types: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] in types]

    async def answer(self, offer: Offer) -> str:
        if self.refuse is not None:
            raise self.refuse
        return ANSWER

    def send_message(self, message: bytes) -> None:
        self.messages.append(message)

    def buffered_bytes(self) -> int:
        return 1 << 20 if self.stuck else 0

    def send_audio(self, payload: bytes, timestamp: int) -> None:
        self.audio.append((payload, timestamp))

    async def close(self) -> None:
        self.closed += 1


class FakeBackend:
    """A ``Backend`` of fakes."""

    def __init__(self) -> None:
        self.peers: list[FakePeer] = []
        self.refuse: ClientError | None = None
        self.backend = Backend("fake", self._make_peer)

    @property
    def peer(self) -> FakePeer:
        return self.peers[-1]

    def _make_peer(self, listener: PeerListener, _group: asyncio.TaskGroup) -> FakePeer:
        peer = FakePeer(listener)
        peer.refuse = self.refuse
        self.peers.append(peer)
        return peer
