"""Sound and files of it, made by libraries that share no code with ours."""

from __future__ import annotations

import io

import av
import numpy as np
import soundfile
from numpy.typing import NDArray

RATE_HZ = 24_000


def tone(seconds: float, hz: float = 440.0, rate_hz: int = RATE_HZ) -> NDArray[np.int16]:
    """A sine at a quarter of full scale."""
    place = np.arange(round(seconds * rate_hz)) / rate_hz
    return np.rint(8000 * np.sin(2 * np.pi * hz * place)).astype("<i2")


def file_of(
    samples: NDArray[np.int16], kind: str, subtype: str | None = None, rate_hz: int = RATE_HZ
) -> bytes:
    """A file by libsndfile; ``samples`` [samples] or [samples, channels]."""
    out = io.BytesIO()
    # Whole numbers would be written as they are, far above full scale.
    values = samples / 32768 if subtype == "FLOAT" else samples
    soundfile.write(out, values, rate_hz, format=kind, subtype=subtype)
    return out.getvalue()


def browser_file(samples: NDArray[np.int16], container: str, codec: str, rate_hz: int) -> bytes:
    """A file by libav, for containers that libsndfile does not know."""
    out = io.BytesIO()
    with av.open(out, "w", format=container) as file:
        stream = file.add_stream(codec, rate=rate_hz, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = rate_hz
        resampler = av.AudioResampler(stream.codec_context.format.name, "mono", rate_hz)
        for converted in resampler.resample(frame):
            file.mux(stream.encode(converted))
        file.mux(stream.encode(None))
    return out.getvalue()


def loudest_hz(samples: NDArray[np.floating] | NDArray[np.int16], rate_hz: int) -> float:
    """The frequency that most of the sound is at."""
    window = np.hanning(len(samples))
    spectrum = np.abs(np.fft.rfft(samples * window))
    return float(np.argmax(spectrum) * rate_hz / len(samples))


def level(samples: NDArray[np.int16]) -> float:
    """The height of a sine, measured in its middle, where no codec swings in or out."""
    middle = samples[len(samples) // 4 : -len(samples) // 4].astype(np.float64)
    return float(np.sqrt(2 * np.mean(middle**2)))
