"""The port to a WebRTC library: one peer connection, as a call sees it.

Two libraries stand behind it, and one contract suite runs on both. Payloads go out as they are on
the wire, since each call encodes its own speech; audio comes in as PCM, decoded where the library
has threads for it. This module must not know either library, nor sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from duologue.core.errors import ConfigError
from duologue.gateway.webrtc.offer import Offer

AUDIO_IN_HZ = 24_000
"""Rate of the PCM that a peer hands in."""

CHANNEL_LABEL = "oai-events"
"""The data channel of a call; a peer may open others, which nobody listens to."""


class PeerListener(Protocol):
    """What a call hears from its peer connection.

    Concurrency:
        Called on the event loop, in order; no method may raise or wait.
    """

    def on_connected(self) -> None:
        """ICE and DTLS are done, or work again after ``on_lost``: audio may flow."""
        ...

    def on_lost(self) -> None:
        """The peer gives no sign of life, and may still come back."""
        ...

    def on_channel_open(self) -> None:
        """The data channel is open: messages may be sent."""
        ...

    def on_message(self, message: bytes) -> None:
        """A message has come on the data channel."""
        ...

    def on_drained(self) -> None:
        """Less than the low-water mark of what was sent still waits for the network."""
        ...

    def on_audio(self, pcm: bytes) -> None:
        """Audio has come, s16le mono at ``AUDIO_IN_HZ``; what was lost has been filled in."""
        ...

    def on_gone(self, reason: str) -> None:
        """The connection is over, or cannot be made; nothing follows."""
        ...


class Peer(Protocol):
    """One peer connection on the answering side.

    Life: ``answer`` once, then anything, and ``close`` at last, whatever happened.

    Concurrency:
        Belongs to the event loop. ``answer`` and ``close`` wait, nothing else does.
    """

    async def answer(self, offer: Offer) -> str:
        """Return the answer's SDP with all candidates that could be found in time.

        Raises:
            ClientError: The library cannot take the offer.
        """
        ...

    def send_message(self, message: bytes) -> None:
        """Send a text message on the data channel; does nothing where none is open."""
        ...

    def buffered_bytes(self) -> int:
        """How much of what was sent on the data channel still waits for the network."""
        ...

    def send_audio(self, payload: bytes, timestamp: int) -> None:
        """Send one packet of audio.

        Args:
            payload: In the codec of the offer.
            timestamp: Samples of the codec's RTP clock since the beginning.
        """
        ...

    async def close(self) -> None:
        """Let go of everything, sockets first; may be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    """A WebRTC library that is there and has been tried out.

    Args:
        make_peer: Makes a peer connection that tells a listener; what it does in the background
            belongs to the group, and ends when it is closed.
    """

    name: str
    make_peer: Callable[[PeerListener, asyncio.TaskGroup], Peer]


LOW_WATER_BYTES = 64 * 1024
"""Of the data channel: above it nothing more is written, since it could not be called back."""


class BackendMissing(ConfigError):
    """No WebRTC library is installed. The message says which one to install."""

    default_code = "webrtc_unavailable"
