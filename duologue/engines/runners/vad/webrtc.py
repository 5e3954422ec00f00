"""WebRTC's voice activity detector: 15 us of CPU a window, weak in noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from duologue.core.audio import ms_to_samples
from duologue.engines.runners.registry import RunnerType
from duologue.engines.runners.speech_stream import SPEECH_RATE_HZ
from duologue.engines.runners.vad.voice_activity import VoiceActivityRunner

_WINDOW_MS = 20


class WebrtcVadSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``webrtc_vad``.

    Args:
        mode: 0 takes most for speech, 3 the least.
        max_batch: How many jobs one step may take.
    """

    mode: Annotated[int, msgspec.Meta(ge=0, le=3)] = 3
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 256


class WebrtcDetector:
    """Says 0 or 1; a stream's memory is a detector object of its own."""

    window_samples = ms_to_samples(_WINDOW_MS, SPEECH_RATE_HZ)

    def __init__(self, settings: WebrtcVadSettings) -> None:
        import webrtcvad

        self._make = webrtcvad.Vad
        self._mode = settings.mode

    def open(self) -> Any:
        """Return a new detector."""
        return self._make(self._mode)

    def judge(self, memories: Sequence[Any], windows: Sequence[bytes]) -> Sequence[float]:
        """Ask each stream's own detector."""
        return [
            float(memory.is_speech(window, SPEECH_RATE_HZ))
            for memory, window in zip(memories, windows, strict=True)
        ]


def build(settings: WebrtcVadSettings) -> VoiceActivityRunner:
    """Load the library and make the runner."""
    return VoiceActivityRunner(WebrtcDetector(settings), settings.max_batch)


WEBRTC_VAD = RunnerType.plain(WebrtcVadSettings, build, sleep_levels=(2,))
