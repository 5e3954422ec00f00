"""C31 by telephone: a tone in, through the model's rate, and back, for each carrier."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from duologue.codecs.g711 import decode_alaw, decode_ulaw, encode_alaw, encode_ulaw
from duologue.duplex_plugins.contract import Audio
from duologue.duplex_plugins.echo import EchoPlugin
from duologue.duplex_plugins.echo.plugin import RATE_HZ
from tests.unit.codecs.tones import TONE_HZ, level_db, loudest_hz, tone
from tests.unit.gateway.raw_websocket import TEXT, RawWebSocket, connected
from tests.unit.gateway.small_server import small_server

LINE_HZ = 8_000
FRAME = 160
PAUSE = bytes(LINE_HZ // 5 * 2)
"""200 ms of silence, s16le."""

Codec = tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]
ULAW: Codec = (encode_ulaw, decode_ulaw)
ALAW: Codec = (encode_alaw, decode_alaw)

TWILIO = {"streamSid": "MZ1", "customParameters": {"greeting": ""}}
TELNYX = {"custom_parameters": {"greeting": ""}}
CALLS: list[tuple[str, dict[str, Any], Codec]] = [
    ("twilio", {"start": TWILIO}, ULAW),
    ("telnyx", {"stream_id": "s", "start": TELNYX}, ULAW),
    (
        "telnyx",
        {"start": TELNYX | {"media_format": {"encoding": "PCMA", "sample_rate": 8000}}},
        ALAW,
    ),
    ("plivo", {"start": {"streamId": "s"}, "extra_headers": "greeting="}, ULAW),
]


class ListeningEcho(EchoPlugin):
    """An echo that remembers what it heard."""

    def __init__(self) -> None:
        self.heard = bytearray()

    def step(self, state: Any, item: Any) -> Any:
        if isinstance(item, Audio):
            self.heard += item.frame.pcm
        return super().step(state, item)


def sounding(pcm: bytes, rate_hz: int) -> bytes:
    """The stretch between the first and the last loud millisecond."""
    samples = np.frombuffer(pcm, "<i2").astype(float)
    size = rate_hz // 1000
    blocks = samples[: len(samples) // size * size].reshape(-1, size)
    loud = np.flatnonzero(np.abs(blocks).max(axis=1) > 1000)
    return pcm[loud[0] * size * 2 : (loud[-1] + 1) * size * 2]


def check(pcm: bytes, rate_hz: int) -> None:
    part = sounding(pcm, rate_hz)
    assert abs(len(part) / 2 / rate_hz - 1.0) <= 0.020
    assert abs(loudest_hz(part, rate_hz) - TONE_HZ) <= 5
    assert abs(level_db(part, rate_hz)) <= 1


async def echoed(peer: RawWebSocket, size: int) -> bytes:
    """So much of what the carrier is to play."""
    played = bytearray()
    while len(played) < size:
        message = json.loads((await peer.frame()).payload)
        if message["event"] in ("media", "playAudio"):
            played += base64.b64decode(message["media"]["payload"])
    return bytes(played)


@pytest.mark.parametrize(("carrier", "start", "codec"), CALLS)
async def test_c31_a_tone_is_heard_and_played_as_it_is(
    carrier: str, start: dict[str, Any], codec: Codec
) -> None:
    encode, decode = codec
    plugin = ListeningEcho()
    async with (
        small_server(plugins={"echo": plugin}) as server,
        connected(server.port) as peer,
    ):
        await peer.upgrade(f"/v1/telephony/{carrier}/stream")
        peer.send(TEXT, json.dumps({"event": "start", **start}).encode())
        line = encode(PAUSE + tone(LINE_HZ) + PAUSE + PAUSE)
        for at in range(0, len(line), FRAME):
            media = {"payload": base64.b64encode(line[at : at + FRAME]).decode()}
            peer.send(TEXT, json.dumps({"event": "media", "media": media}).encode())
        # The echo begins with the second frame, and the last ones are still on their way.
        played = await echoed(peer, len(line) - LINE_HZ // 5)
        check(bytes(plugin.heard), RATE_HZ)
        check(decode(played), LINE_HZ)


async def test_frames_that_overtake_each_other_are_heard_in_order() -> None:
    """Telnyx keeps no order, and numbers its frames: here each is louder than the one before."""
    plugin = ListeningEcho()
    steps = 40
    async with (
        small_server(plugins={"echo": plugin}) as server,
        connected(server.port) as peer,
    ):
        await peer.upgrade("/v1/telephony/telnyx/stream")
        peer.send(TEXT, json.dumps({"event": "start", "start": TELNYX}).encode())
        for number in (0, 1, *(place ^ 1 for place in range(2, steps))):
            level = np.full(FRAME, 500 * (number + 1), "<i2").tobytes()
            payload = base64.b64encode(encode_ulaw(level)).decode()
            media = {"track": "inbound", "chunk": str(number), "payload": payload}
            peer.send(TEXT, json.dumps({"event": "media", "media": media}).encode())
        await echoed(peer, (steps - 5) * FRAME)
    heard = np.frombuffer(bytes(plugin.heard), "<i2")
    middles = heard[RATE_HZ // 100 :: RATE_HZ // 50]
    assert len(middles) >= steps - 5
    assert np.all(np.diff(middles) >= 0)  # G.711 has coarse steps where it is loud
