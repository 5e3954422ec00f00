"""Microphone and loudspeaker of this machine in a call.

The sound card calls in its own threads; both sides meet in two bounded queues, which is all that
the threads share. This module must not know events, nor any sound library.
"""

from __future__ import annotations

import asyncio
from collections import deque

from duologue.clients.devices import DevicePort
from duologue.clients.errors import CallError, SendBufferFull
from duologue.clients.sound_card import PortAudioCard, SoundCard
from duologue.core.audio import SAMPLE_BYTES, ms_to_samples

BLOCK_MS = 20
AHEAD_BLOCKS = 4
"""Speech that is handed to the sound card ahead of time: what a busy loop may be late by. An
interruption takes it back."""

MICROPHONE_BLOCKS = 250
"""Said while the loop was busy; past these 5 s the oldest are lost."""


class AudioDevice:
    """The sound card as the device of a call; of one call at a time.

    Wear headphones: a microphone that hears the loudspeaker interrupts the answers.

    Args:
        card: Where the streams come from.
    """

    def __init__(self, card: SoundCard | None = None) -> None:
        self.lost_blocks = 0
        """Blocks of the microphone that were not sent."""

        self._card = card or PortAudioCard()
        self._said: deque[bytes] = deque(maxlen=MICROPHONE_BLOCKS)
        self._to_play: deque[bytes] = deque()
        self._silence = b""
        self._latency_samples = 0
        self._call: DevicePort | None = None

    async def run(self, call: DevicePort) -> None:
        """Speak and listen until cancelled.

        Raises:
            AudioDeviceError: There is no microphone, or no loudspeaker.
        """
        loop = asyncio.get_running_loop()
        block_samples = ms_to_samples(BLOCK_MS, call.rate_hz)
        self._silence = bytes(block_samples * SAMPLE_BYTES)
        self._call = call
        self._refill()

        def on_said(block: bytes) -> None:
            self._said.append(block)
            loop.call_soon_threadsafe(self._send)

        def next_block() -> bytes:
            loop.call_soon_threadsafe(self._refill)
            try:
                return self._to_play.popleft()
            except IndexError:
                return self._silence

        streams = await asyncio.to_thread(
            self._card.open, call.rate_hz, block_samples, on_said, next_block
        )
        self._latency_samples = round(streams.output_latency_s * call.rate_hz)
        try:
            await asyncio.Event().wait()
        finally:
            self._call = None
            streams.close()

    def silence(self) -> int:
        """Take back what the sound card has not begun to play."""
        taken = 0
        try:
            while True:
                taken += len(self._to_play.popleft()) // SAMPLE_BYTES
        except IndexError:
            return taken

    def unsounded(self) -> int:
        """What waits for the sound card, and what it says that it holds."""
        waiting = len(self._to_play) * len(self._silence) // SAMPLE_BYTES
        return waiting + self._latency_samples

    def _send(self) -> None:
        while self._said and self._call is not None:
            try:
                self._call.send_audio(self._said.popleft())
            except SendBufferFull:
                self.lost_blocks += 1
            except CallError:
                self._said.clear()

    def _refill(self) -> None:
        if self._call is None:
            return
        samples = len(self._silence) // SAMPLE_BYTES
        # Silence is not queued: it would only keep the first word waiting.
        while self._call.has_speech and len(self._to_play) < AHEAD_BLOCKS:
            self._to_play.append(self._call.take_audio(samples).pcm)
