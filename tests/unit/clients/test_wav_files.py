from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest

from duologue.clients.wav_files import read_wav, write_wav
from duologue.core.errors import CodecError
from tests.fakes.talking_gateway import speech


def written(path: Path, frames: bytes, *, rate_hz: int, channels: int = 1, width: int = 2) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate_hz)
        file.writeframes(frames)
    return path


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    write_wav(path, speech(100))
    assert read_wav(path) == read_wav(str(path)) == speech(100)
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 24_000)
    write_wav(path, b"")
    assert read_wav(path) == b""


def test_stereo_at_another_rate_becomes_what_a_call_takes(tmp_path: Path) -> None:
    tone = (8000 * np.sin(2 * np.pi * 220 * np.arange(44_100) / 44_100)).astype("<i2")
    frames = np.stack([tone, np.zeros_like(tone)], axis=1).tobytes()
    path = written(tmp_path / "a.wav", frames, rate_hz=44_100, channels=2)
    got = np.frombuffer(read_wav(path), "<i2").astype(int)
    expected = 4000 * np.sin(2 * np.pi * 220 * np.arange(24_000) / 24_000)
    assert len(got) == 24_000
    assert np.abs(got - expected)[500:-500].max() < 40


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    wide = written(tmp_path / "wide.wav", bytes(300), rate_hz=24_000, width=3)
    with pytest.raises(CodecError, match=r"24 bits, not 16.*ffmpeg"):
        read_wav(wide)
    slow = written(tmp_path / "slow.wav", bytes(300), rate_hz=1000)
    with pytest.raises(CodecError, match="rate is 1000 Hz"):
        read_wav(slow)
    other, empty = tmp_path / "other.wav", tmp_path / "empty.wav"
    other.write_bytes(b"fLaC" + bytes(100))
    empty.write_bytes(b"")
    with pytest.raises(CodecError, match=r"cannot read .*other\.wav as a WAV file"):
        read_wav(other)
    with pytest.raises(CodecError, match="ends too early"):
        read_wav(empty)
    with pytest.raises(FileNotFoundError):
        read_wav(tmp_path / "none.wav")
    with pytest.raises(TypeError):
        write_wav(tmp_path / "b.wav", "answer")  # type: ignore[arg-type]
    assert not (tmp_path / "b.wav").exists()
