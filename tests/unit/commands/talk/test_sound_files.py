from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from duologue.commands.talk.sound_files import check_writable, read_speech, write_speech
from duologue.core.errors import ConfigError


def tone(rate_hz: int, seconds: float = 1.0, hz: float = 440.0) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hz * np.arange(int(seconds * rate_hz)) / rate_hz)


@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000, 44100, 48000])
def test_any_rate_becomes_the_calls(tmp_path: Path, rate_hz: int) -> None:
    path = tmp_path / "in.wav"
    soundfile.write(path, tone(rate_hz), rate_hz)
    samples = np.frombuffer(read_speech(path), "<i2")
    assert len(samples) == pytest.approx(24_000, abs=2)
    spectrum = np.abs(np.fft.rfft(samples[:24_000]))
    assert np.argmax(spectrum) == pytest.approx(440, abs=2)


def test_channels_are_mixed(tmp_path: Path) -> None:
    path = tmp_path / "in.wav"
    both = np.stack([tone(24_000), -tone(24_000)], axis=1)
    soundfile.write(path, both, 24_000)
    assert np.abs(np.frombuffer(read_speech(path), "<i2")).max() <= 1


def test_lanes_become_channels_and_shorter_ones_end_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    write_speech(path, [b"\x01\x00" * 10, b"\x02\x00" * 4])
    samples, rate_hz = soundfile.read(path, dtype="int16")
    assert rate_hz == 24_000
    assert samples[:, 0].tolist() == [1] * 10
    assert samples[:, 1].tolist() == [2] * 4 + [0] * 6


def test_what_is_no_sound_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "text.wav"
    path.write_text("hello")
    with pytest.raises(ConfigError, match=r"cannot read .*text\.wav"):
        read_speech(path)
    with pytest.raises(ConfigError, match=r"cannot read .*none\.wav"):
        read_speech(tmp_path / "none.wav")


def test_a_file_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.wav"
    soundfile.write(path, np.zeros(8000 * 601, np.int16), 8000)
    with pytest.raises(ConfigError, match="lasts 601 s, the limit is 600 s"):
        read_speech(path)


def test_a_file_that_there_is_not_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.wav: there is no such file"):
        read_speech(tmp_path / "none.wav")


def test_whether_a_file_could_be_written_is_known_before(tmp_path: Path) -> None:
    check_writable(tmp_path / "new.wav")
    with pytest.raises(ConfigError, match=f"there is no folder {tmp_path}/none"):
        check_writable(tmp_path / "none" / "x.wav")
    with pytest.raises(ConfigError, match="name another file"):
        check_writable(tmp_path)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        write_speech(tmp_path / "nowhere" / "out.wav", [b""])
