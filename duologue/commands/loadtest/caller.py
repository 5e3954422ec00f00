"""One caller of a load test: says the same thing again and again, and listens to the answers.

This module must not know other callers.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from duologue.clients.client import DuplexClient
from duologue.clients.clip_device import ClipDevice
from duologue.clients.errors import CommandRefused
from duologue.clients.playback import RATE_HZ
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.clock import Clock
from duologue.core.errors import DuologueError

ANSWER_TIMEOUT_S = 30.0
BREATH_S = 0.3
MAX_ERRORS = 5


@dataclass(frozen=True, slots=True)
class Clip:
    """What is said.

    Units:
        s16le mono at 24 kHz; the speech in it ends ``speech_until_s`` after its beginning.
    """

    pcm: bytes
    speech_until_s: float

    @property
    def length_s(self) -> float:
        """How long it lasts."""
        return len(self.pcm) / SAMPLE_BYTES / RATE_HZ


@dataclass(slots=True)
class CallerResult:
    """What one caller met with.

    Args:
        connect_s: From dialling to the server's greeting; ``None``: there was no call.
        waits_s: From the end of the speech to the first audible sample, one for each answer.
        unanswered: Questions that were not answered in time.
        gap_s: Silence inside answers.
        dropped_frames: Frames of the microphone that the network did not take.
        errors: In the words of the client; the first few.
    """

    connect_s: float | None = None
    waits_s: list[float] = field(default_factory=list)
    unanswered: int = 0
    gap_s: float = 0.0
    dropped_frames: int = 0
    errors: list[str] = field(default_factory=list)

    def failed(self, error: DuologueError) -> None:
        """Note an error."""
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(f"{error.code}: {error.message}")


async def hold_one_call(
    url: str,
    clip: Clip,
    until: float,
    clock: Clock,
    *,
    api_key: str | None = None,
    model: str | None = None,
    seed: int = 0,
) -> CallerResult:
    """Hold a call until a moment of the clock, or until it breaks. Never raises what a call may.

    Args:
        seed: Of the noise in the caller's room.
    """
    result = CallerResult()
    device = ClipDevice(clock=clock, seed=seed)
    began_at = clock.now()
    try:
        async with DuplexClient.connect(
            url, api_key=api_key, model=model, device=device, clock=clock
        ) as call:
            result.connect_s = clock.now() - began_at
            try:
                while clock.now() + clip.length_s < until and call.ended is None:
                    await _ask_once(call, device, clip, until, result, clock)
            finally:
                result.gap_s = call.playback.gap_samples / RATE_HZ
                result.dropped_frames = device.dropped_frames
    except DuologueError as exc:
        result.failed(exc)
    return result


async def _ask_once(
    call: DuplexClient,
    device: ClipDevice,
    clip: Clip,
    until: float,
    result: CallerResult,
    clock: Clock,
) -> None:
    heard_before = _first_sounds(call)
    start_s = device.say(clip.pcm) / RATE_HZ
    await call.wait_until(lambda: not device.speaking, clip.length_s + ANSWER_TIMEOUT_S)
    spoken_until = device.started_at + start_s + clip.speech_until_s
    if call.session.audio.input.turn_detection is None and not await _asked_by_hand(call):
        # It answers while it listens, as an echo does: there is no wait to be measured.
        return
    patience_s = max(0.1, min(ANSWER_TIMEOUT_S, until - clock.now()))
    try:
        await call.wait_until(lambda: len(_first_sounds(call)) > len(heard_before), patience_s)
    except TimeoutError:
        # A question at the very end of the test had no time to be answered.
        result.unanswered += patience_s >= ANSWER_TIMEOUT_S
        return
    result.waits_s.append(_first_sounds(call)[-1] - spoken_until)
    try:
        await call.wait_until_quiet(max(0.1, until - clock.now()))
    except TimeoutError:
        return
    await asyncio.sleep(BREATH_S)


def _first_sounds(call: DuplexClient) -> list[float]:
    return [turn.audible_at for turn in call.timing if turn.audible_at is not None]


async def _asked_by_hand(call: DuplexClient) -> bool:
    """End the turn and ask for an answer, where the server does neither."""
    try:
        await call.commit_audio()
        await call.create_response()
    except CommandRefused:
        return False
    return True
