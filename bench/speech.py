"""Where speech begins and ends in audio: the definitions that every latency here rests on."""

import numpy as np
import numpy.typing as npt
import soxr

Floats = npt.NDArray[np.float32]

SPEECH = 0.02
"""Speech reaches from the first to the last sample above this part of the peak (-34 dB)."""

AUDIBLE = 0.01
"""An answer is audible from the first sample above this part of full scale (-40 dBFS)."""


def speech_start_s(audio: Floats, sample_rate_hz: int) -> float:
    """Time of the first sample that belongs to the speech."""
    loud = np.flatnonzero(np.abs(audio) > SPEECH * np.abs(audio).max())
    return float(loud[0]) / sample_rate_hz


def speech_end_s(audio: Floats, sample_rate_hz: int) -> float:
    """Time of the last sample that belongs to the speech."""
    loud = np.flatnonzero(np.abs(audio) > SPEECH * np.abs(audio).max())
    return float(loud[-1] + 1) / sample_rate_hz


def first_audible_s(audio: Floats, sample_rate_hz: int) -> float | None:
    """Time of the first audible sample; None when all is silent."""
    loud = np.flatnonzero(np.abs(audio) > AUDIBLE)
    return float(loud[0]) / sample_rate_hz if len(loud) else None


def at_rate(audio: Floats, from_hz: int, to_hz: int) -> Floats:
    """Mono audio at another sample rate."""
    if audio.ndim > 1:
        audio = audio.mean(axis=1)
    return np.asarray(soxr.resample(audio, from_hz, to_hz), np.float32)


def pcm16(audio: Floats) -> bytes:
    return (np.clip(audio, -1.0, 1.0) * 32767).astype("<i2").tobytes()


def from_pcm16(pcm: bytes) -> Floats:
    return np.frombuffer(pcm, "<i2").astype(np.float32) / 32768
