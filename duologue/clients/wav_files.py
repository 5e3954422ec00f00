"""WAV files for calls: a question from one, the answer into another. Needs no sound library.

This module must not know calls.
"""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

from duologue.clients.arguments import checked_pcm
from duologue.clients.playback import RATE_HZ
from duologue.codecs.resample import StreamResampler
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import CodecError

_LEAST_RATE_HZ, _MOST_RATE_HZ = 4000, 192_000


def read_wav(path: str | Path) -> bytes:
    """Return a WAV file of 16-bit samples as a call takes it; other rates and stereo are converted.

    Returns:
        s16le mono at 24 kHz.

    Raises:
        OSError: There is no such file, or it may not be read.
        CodecError: It is no WAV file of 16-bit samples.
    """
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, rate_hz = file.getnchannels(), file.getsampwidth(), file.getframerate()
            if width != SAMPLE_BYTES:
                raise _unreadable(path, f"its samples have {8 * width} bits, not 16")
            if not _LEAST_RATE_HZ <= rate_hz <= _MOST_RATE_HZ:
                limits = f"{_LEAST_RATE_HZ} to {_MOST_RATE_HZ}"
                raise _unreadable(path, f"its rate is {rate_hz} Hz, not {limits}")
            pcm = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as exc:
        raise _unreadable(path, str(exc) or "it ends too early") from exc
    pcm = pcm[: len(pcm) - len(pcm) % (channels * SAMPLE_BYTES)]
    if channels > 1:
        pcm = np.frombuffer(pcm, "<i2").reshape(-1, channels).mean(axis=1).astype("<i2").tobytes()
    resampler = StreamResampler(rate_hz, RATE_HZ)
    return resampler.process(pcm) + resampler.flush()


def write_wav(path: str | Path, pcm: bytes) -> None:
    """Write what a call gives, such as ``answer.audio``, to a WAV file.

    Args:
        pcm: s16le mono at 24 kHz.

    Raises:
        OSError: The file cannot be written.
        TypeError: ``pcm`` is no bytes.
    """
    data = checked_pcm(pcm)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(SAMPLE_BYTES)
        file.setframerate(RATE_HZ)
        file.writeframes(data)


def _unreadable(path: str | Path, why: str) -> CodecError:
    return CodecError(
        f"cannot read {path} as a WAV file of 16-bit samples: {why}. Make one with: "
        f"ffmpeg -i {path} -c:a pcm_s16le question.wav"
    )
