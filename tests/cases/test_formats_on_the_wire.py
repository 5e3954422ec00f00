"""C31 over a real WebSocket: a tone goes in as one format and comes back as another.

The model is an echo at 24 kHz, so each pair of formats is resampled on the way in and again on the
way out. What is measured is what a person would hear: pitch, length and level.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from duologue.codecs.g711 import decode_alaw, decode_ulaw, encode_alaw, encode_ulaw
from tests.unit.gateway.raw_websocket import RawWebSocket, connected
from tests.unit.gateway.small_server import SmallServer, small_server

Floats = npt.NDArray[np.float64]

FORMATS: dict[str, dict[str, Any]] = {
    "pcm 8k": {"type": "audio/pcm", "rate": 8000},
    "pcm 16k": {"type": "audio/pcm", "rate": 16000},
    "pcm 24k": {"type": "audio/pcm", "rate": 24000},
    "pcm 48k": {"type": "audio/pcm", "rate": 48000},
    "f32 16k": {"type": "audio/pcm_f32le", "rate": 16000},
    "u-law": {"type": "audio/pcmu"},
    "a-law": {"type": "audio/pcma"},
}
TONE_HZ = 1000
LEVEL = 0.25
CHUNK_MS = 20
BEFORE_MS, TONE_MS, AFTER_MS = 200, 1000, 300
"""The echo begins with the second chunk; the last samples stay in the resamplers."""

ENOUGH_MS = BEFORE_MS + TONE_MS + AFTER_MS // 2


def rate_of(name: str) -> int:
    return int(FORMATS[name].get("rate", 8000))


def encoded(name: str, samples: Floats) -> bytes:
    if name == "f32 16k":
        return samples.astype("<f4").tobytes()
    pcm = np.rint(samples * 32767).astype("<i2").tobytes()
    return {"u-law": encode_ulaw, "a-law": encode_alaw}.get(name, bytes)(pcm)


def decoded(name: str, wire: bytes) -> Floats:
    if name == "f32 16k":
        return np.frombuffer(wire, "<f4").astype(float)
    pcm = {"u-law": decode_ulaw, "a-law": decode_alaw}.get(name, bytes)(wire)
    return np.frombuffer(pcm, "<i2") / 32767


def call_with_a_tone(rate_hz: int) -> Floats:
    count = rate_hz * (BEFORE_MS + TONE_MS + AFTER_MS) // 1000
    time_s = np.arange(count) / rate_hz
    tone = LEVEL * np.sin(2 * np.pi * TONE_HZ * time_s)
    start, end = BEFORE_MS / 1000, (BEFORE_MS + TONE_MS) / 1000
    return np.where((time_s >= start) & (time_s < end), tone, 0.0)


async def echo(peer: RawWebSocket, inp: str, out: str) -> Floats:
    """Say the tone in one format, and return what comes back in the other."""
    await peer.upgrade("/v1/realtime?model=echo")
    audio = {"input": {"format": FORMATS[inp]}, "output": {"format": FORMATS[out]}}
    peer.send_event({"type": "session.update", "session": {"audio": audio}})
    updated = (await peer.until("session.updated"))[-1]["session"]["audio"]
    assert updated["input"]["format"] == FORMATS[inp]
    assert updated["output"]["format"] == FORMATS[out]
    samples = call_with_a_tone(rate_of(inp))
    step = rate_of(inp) * CHUNK_MS // 1000
    for start in range(0, len(samples), step):
        chunk = base64.b64encode(encoded(inp, samples[start : start + step])).decode()
        peer.send_event({"type": "input_audio_buffer.append", "audio": chunk})
    heard = b""
    sample_bytes = len(encoded(out, np.zeros(1)))
    while len(heard) < rate_of(out) * ENOUGH_MS // 1000 * sample_bytes:
        event = await peer.event()
        assert event["type"] != "error", event
        if event["type"] == "response.output_audio.delta":
            heard += base64.b64decode(event["delta"])
    return decoded(out, heard)


@pytest.fixture
async def server() -> AsyncIterator[SmallServer]:
    async with small_server() as server:
        yield server


@pytest.mark.parametrize("inp", FORMATS)
async def test_c31_a_tone_keeps_pitch_length_and_level_in_every_format(
    server: SmallServer, inp: str
) -> None:
    for out in FORMATS:
        async with connected(server.port) as peer:
            heard = await echo(peer, inp, out)
        rate_hz = rate_of(out)
        loud = np.flatnonzero(np.abs(heard) > LEVEL / 2)
        length_ms = (loud[-1] - loud[0]) * 1000 / rate_hz
        assert abs(length_ms - TONE_MS) <= CHUNK_MS, (out, length_ms)
        middle = heard[loud[0] + rate_hz // 10 : loud[-1] - rate_hz // 10]
        spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
        pitch_hz = np.argmax(spectrum) * rate_hz / len(middle)
        assert abs(pitch_hz - TONE_HZ) <= 5, (out, pitch_hz)
        level = np.sqrt(np.mean(middle**2) * 2)
        assert abs(20 * np.log10(level / LEVEL)) <= 1, (out, level)


@pytest.mark.parametrize(
    ("patch", "param"),
    [
        ({"type": "audio/pcm", "rate": 44100}, "rate"),
        ({"type": "audio/pcmu", "rate": 16000}, "rate"),
        ({"type": "audio/mpeg"}, "type"),
        ({"type": "audio/pcm", "rate": "24000"}, "rate"),
    ],
)
async def test_c31_a_format_that_there_is_not_is_refused_and_not_noise(
    server: SmallServer, patch: dict[str, Any], param: str
) -> None:
    async with connected(server.port) as peer:
        await peer.upgrade("/v1/realtime?model=echo")
        await peer.event()
        for side in ("input", "output"):
            session = {"instructions": "valid", "audio": {side: {"format": patch}}}
            peer.send_event({"type": "session.update", "session": session})
            error = (await peer.event())["error"]
            assert error["param"] == f"session.audio.{side}.format.{param}"
        peer.send_event({"type": "session.update", "session": {}})
        unchanged = (await peer.event())["session"]
        assert unchanged["instructions"] == ""
        assert unchanged["audio"]["input"]["format"] == {"type": "audio/pcm", "rate": 24000}
