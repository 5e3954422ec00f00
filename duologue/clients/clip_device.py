"""A microphone and a loudspeaker without a sound card: clips go in, what is played comes out.

For files, demonstrations and load. Both directions run in real time on one schedule of frames, so
what was said and what was heard stay on one timeline. This module must not know events.
"""

from __future__ import annotations

import asyncio
import random
from array import array
from collections import deque
from collections.abc import Callable

from duologue.clients.devices import DevicePort
from duologue.clients.errors import CallError, SendBufferFull
from duologue.clients.playback import RATE_HZ, Taken
from duologue.core.audio import SAMPLE_BYTES, ms_to_samples, silence
from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import LimitExceeded

FRAME_MS = 20
CLIP_LIMIT_S = 600
NOISE_LEVEL = 7
"""Of 32,768: a quiet room, about -74 dBFS. Digital silence is what no microphone gives."""

OnFrame = Callable[[bytes, Taken], None]
"""Told of each frame: what was said, and what the loudspeaker began to play at that moment."""


class FrameSchedule:
    """When each frame is due, fixed at the start, so that delays do not add up."""

    def __init__(self, start: float, frame_s: float) -> None:
        self.frames = 0
        """Frames that were handed out."""

        self._start = start
        self._frame_s = frame_s

    @property
    def next_at(self) -> float:
        """When the last sample of the next frame has been said."""
        return self._start + (self.frames + 1) * self._frame_s

    def due(self, now: float) -> int:
        """Hand out the frames that are due by ``now``."""
        passed = int((now - self._start) / self._frame_s + 1e-9) - self.frames
        self.frames += max(0, passed)
        return max(0, passed)


class ClipDevice:
    """A device for one call at a time.

    Args:
        on_frame: Hears both directions, for recordings.
        noise: Amplitude of the noise of the room.
        seed: Of that noise.
    """

    def __init__(
        self,
        *,
        on_frame: OnFrame | None = None,
        clock: Clock | None = None,
        noise: int = NOISE_LEVEL,
        seed: int = 0,
    ) -> None:
        self.dropped_frames = 0
        """Frames that were said while the network took nothing."""

        self.started_at = 0.0
        """When its first frame began."""

        self.said_samples = 0
        """Length of what was said so far: the time of this device."""

        self._on_frame = on_frame
        self._now = (clock or SystemClock()).now
        self._frame_samples = ms_to_samples(FRAME_MS, RATE_HZ)
        self._clips: deque[bytes] = deque()
        self._offset = 0
        """Into the first of them, in bytes."""

        self._waiting_samples = 0
        self._room = _noise(noise, seed)

    @property
    def speaking(self) -> bool:
        """A clip is being said."""
        return bool(self._clips)

    def say(self, pcm: bytes) -> int:
        """Say a clip from the next frame on, after those that wait.

        Args:
            pcm: s16le mono at 24 kHz.

        Returns:
            The position of its first sample on the device's time.

        Raises:
            LimitExceeded: Too much waits to be said.
        """
        samples = len(pcm) // SAMPLE_BYTES
        if self._waiting_samples + samples > CLIP_LIMIT_S * RATE_HZ:
            raise LimitExceeded(
                f"{(self._waiting_samples + samples) / RATE_HZ:.0f} s of clips would wait, "
                f"the limit is {CLIP_LIMIT_S} s"
            )
        start = self.said_samples + self._waiting_samples
        pcm = pcm[: samples * SAMPLE_BYTES]
        # Whole frames, so that each clip starts at the position that was promised.
        padding = -samples % self._frame_samples
        self._clips.append(pcm + silence(padding))
        self._waiting_samples += samples + padding
        return start

    async def run(self, call: DevicePort) -> None:
        """Speak and listen until cancelled."""
        self.started_at = self._now()
        schedule = FrameSchedule(self.started_at, FRAME_MS / 1000)
        while True:
            now = self._now()
            for _ in range(schedule.due(now)):
                self._frame(call)
            await asyncio.sleep(max(0.0, schedule.next_at - self._now()))

    def silence(self) -> int:
        """Nothing to throw away: what is taken counts as played."""
        return 0

    def unsounded(self) -> int:
        """Nothing: what is taken counts as heard."""
        return 0

    def _frame(self, call: DevicePort) -> None:
        said = self._next_frame()
        try:
            call.send_audio(said)
        except SendBufferFull:
            self.dropped_frames += 1
        except CallError:
            # The other side hung up. What it said before may still be listened to.
            pass
        played = call.take_audio(self._frame_samples)
        self.said_samples += self._frame_samples
        if self._on_frame is not None:
            self._on_frame(said, played)

    def _next_frame(self) -> bytes:
        start = self.said_samples % RATE_HZ * SAMPLE_BYTES
        size = self._frame_samples * SAMPLE_BYTES
        room = self._room[start : start + size]
        if not self._clips:
            return room
        clip = self._clips[0]
        frame = clip[self._offset : self._offset + size]
        self._offset += size
        if self._offset >= len(clip):
            self._clips.popleft()
            self._offset = 0
        self._waiting_samples -= self._frame_samples
        return frame


def _noise(amplitude: int, seed: int) -> bytes:
    """A second of noise, which is repeated."""
    if amplitude <= 0:
        return silence(RATE_HZ)
    source = random.Random(seed)
    return array("h", (source.randint(-amplitude, amplitude) for _ in range(RATE_HZ))).tobytes()
