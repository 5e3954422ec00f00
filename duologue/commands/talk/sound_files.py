"""Sound files in and out: any rate and number of channels becomes the call's, and back.

This module must not know calls.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import soundfile

from duologue.clients.playback import RATE_HZ
from duologue.codecs.resample import StreamResampler
from duologue.core.errors import ConfigError

MAX_FILE_S = 600


def read_speech(path: Path, rate_hz: int = RATE_HZ) -> bytes:
    """Return a sound file as s16le mono PCM.

    Raises:
        ConfigError: It cannot be read, or is too long.
    """
    try:
        if not path.is_file():
            raise ConfigError(f"cannot read {path}: there is no such file")
        with soundfile.SoundFile(path) as file:
            if file.frames > MAX_FILE_S * file.samplerate:
                raise ConfigError(
                    f"{path} lasts {file.frames / file.samplerate:.0f} s, "
                    f"the limit is {MAX_FILE_S} s"
                )
            samples = file.read(dtype="float32", always_2d=True).mean(axis=1)
            from_hz = file.samplerate
    except (soundfile.LibsndfileError, OSError) as exc:
        raise ConfigError(f"cannot read {path}: {exc}") from exc
    pcm = (np.clip(samples, -1.0, 1.0) * 32767).astype("<i2").tobytes()
    resampler = StreamResampler(from_hz, rate_hz)
    return resampler.process(pcm) + resampler.flush()


def check_writable(path: Path) -> None:
    """Say before a call, and not after it, that its sound cannot be kept.

    Raises:
        ConfigError: There is no such folder, or it may not be written.
    """
    folder = path.parent
    if not folder.is_dir():
        raise ConfigError(f"cannot write {path}: there is no folder {folder}")
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise ConfigError(f"cannot write {path}; name another file")


def write_speech(path: Path, lanes: Sequence[bytes], rate_hz: int = RATE_HZ) -> None:
    """Write s16le mono lanes as the channels of a WAV file; shorter ones end in silence.

    Raises:
        ConfigError: The file cannot be written.
    """
    length = max((len(lane) for lane in lanes), default=0) // 2
    frames = np.zeros((length, len(lanes)), "<i2")
    for number, lane in enumerate(lanes):
        samples = np.frombuffer(lane, "<i2")
        frames[: len(samples), number] = samples
    try:
        soundfile.write(path, frames, rate_hz, subtype="PCM_16", format="WAV")
    except (soundfile.LibsndfileError, OSError) as exc:
        raise ConfigError(f"cannot write {path}: {exc}") from exc
