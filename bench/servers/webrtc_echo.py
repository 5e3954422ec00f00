"""A server that echoes WebRTC calls through our peers: what comes in is decoded, encoded, sent.

Run by bench_webrtc.py; answers offers on a Unix socket, and says what CPU it has used.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from duologue.gateway.webrtc.audio_out import FRAME_BYTES, FrameEncoder
from duologue.gateway.webrtc.backend import load_backend
from duologue.gateway.webrtc.offer import Offer, read_offer
from duologue.gateway.webrtc.peer import Backend, Peer
from duologue.gateway.webrtc.settings import WebRtcSettings

LIMIT_S = 300


class Echo:
    """One call; sends back what it hears, in frames of 20 ms."""

    def __init__(self, offer: Offer, settings: WebRtcSettings) -> None:
        assert offer.audio is not None
        self.peer: Peer | None = None
        self._encoder = FrameEncoder(offer.audio.codec, settings)
        self._waiting = bytearray()
        self._frames = 0

    def on_connected(self) -> None:
        """Nothing to do."""

    on_lost = on_channel_open = on_drained = on_connected

    def on_message(self, message: bytes) -> None:
        assert self.peer is not None
        self.peer.send_message(message)

    def on_audio(self, pcm: bytes) -> None:
        assert self.peer is not None
        self._waiting += pcm
        while len(self._waiting) >= FRAME_BYTES:
            frame = bytes(self._waiting[:FRAME_BYTES])
            del self._waiting[:FRAME_BYTES]
            self.peer.send_audio(self._encoder.encode(frame), self._frames * self._encoder.step)
            self._frames += 1

    def on_gone(self, reason: str) -> None:
        """The load generator ends its calls by ending itself."""


def usage() -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_s": used.ru_utime + used.ru_stime, "rss_kb": float(used.ru_maxrss)}


async def answer(backend: Backend, settings: WebRtcSettings, sdp: str) -> str:
    offer = read_offer(sdp)
    call = Echo(offer, settings)
    _calls.append(call)
    group = await _group()
    call.peer = backend.make_peer(call, group)
    return await call.peer.answer(offer)


_groups: list[asyncio.TaskGroup] = []
_calls: list[Echo] = []


async def _group() -> asyncio.TaskGroup:
    """One group for all calls, which ends with the process."""
    if not _groups:
        group = asyncio.TaskGroup()
        await group.__aenter__()
        _groups.append(group)
    return _groups[0]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--socket", required=True)
    arguments = parser.parse_args()
    signal.alarm(LIMIT_S)
    settings = WebRtcSettings(backend=arguments.backend, bind_address="127.0.0.1")
    backend = await load_backend(settings)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            request = json.loads(line)
            reply = (
                {"sdp": await answer(backend, settings, request["sdp"])}
                if "sdp" in request
                else usage()
            )
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()

    await asyncio.start_unix_server(serve, arguments.socket, limit=1 << 20)
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
