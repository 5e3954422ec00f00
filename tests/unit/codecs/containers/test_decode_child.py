from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from duologue.codecs.containers import decode_child
from duologue.codecs.containers.decode_child import Refused, pieces
from tests.fakes.sound_files import browser_file, file_of, level, loudest_hz, tone

SCRIPT = Path(decode_child.__file__)
NOISE = bytes(np.random.default_rng(7).integers(0, 256, 50_000, np.uint8))


def decoded(data: bytes, *, max_channels: int = 8, max_s: float = 60.0) -> np.ndarray:
    pcm = b"".join(pieces(data, 16_000, max_channels, max_s))
    return np.frombuffer(pcm, "<i2")


@pytest.mark.parametrize(
    "data",
    [
        file_of(tone(1.0), "MP3"),
        file_of(tone(1.0), "FLAC"),
        file_of(tone(1.0), "OGG", "OPUS"),
        file_of(tone(1.0), "OGG", "VORBIS"),
        file_of(tone(1.0), "WAV", "PCM_24"),
        file_of(tone(1.0, rate_hz=8000), "WAV", "ULAW", 8000),
        browser_file(tone(1.0, rate_hz=48_000), "webm", "libopus", 48_000),
        browser_file(tone(1.0, rate_hz=48_000), "mp4", "aac", 48_000),
    ],
    ids=["mp3", "flac", "opus", "vorbis", "wav24", "ulaw", "webm", "mp4"],
)
def test_files_of_all_kinds_become_mono_at_one_rate(data: bytes) -> None:
    samples = decoded(data)

    assert abs(len(samples) / 16_000 - 1.0) < 0.1
    assert level(samples) == pytest.approx(8000, rel=0.05)


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "PCM_32", "FLOAT", "PCM_U8"])
def test_many_channels_are_mixed_in_equal_parts(subtype: str) -> None:
    silent = np.zeros_like(tone(1.0))
    channels = np.stack([tone(1.0), *[silent] * 7], axis=1)

    samples = decoded(file_of(channels, "WAV", subtype))

    assert abs(loudest_hz(samples, 16_000) - 440) < 2
    assert level(samples) == pytest.approx(1000, rel=0.05)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        bytes(10_000),
        NOISE,
        b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n",
        b"ffconcat version 1.0\nfile /etc/hostname\n",
        file_of(tone(1.0), "MP3")[:40],
        browser_file(tone(1.0, rate_hz=48_000), "webm", "libopus", 48_000)[:200],
        browser_file(tone(1.0, rate_hz=48_000), "mp4", "aac", 48_000)[:2000],
    ],
)
def test_what_is_no_audio_is_refused(data: bytes) -> None:
    with pytest.raises(Refused) as refused:
        decoded(data)

    assert refused.value.reason == decode_child.NO_AUDIO


def test_a_playlist_opens_no_other_file(tmp_path: Path) -> None:
    sound = tmp_path / "sound.wav"
    sound.write_bytes(file_of(tone(1.0), "WAV"))
    playlist = f"ffconcat version 1.0\nfile {sound}\n".encode()

    with pytest.raises(Refused):
        decoded(playlist)


def test_a_picture_without_sound_is_refused() -> None:
    film = io.BytesIO()
    with av.open(film, "w", format="webm") as file:
        stream = file.add_stream("libvpx", rate=25)
        stream.width = stream.height = 64
        picture = av.VideoFrame(64, 64, "yuv420p")
        file.mux(stream.encode(picture))
        file.mux(stream.encode(None))

    with pytest.raises(Refused) as refused:
        decoded(film.getvalue())
    assert refused.value.reason == decode_child.NO_AUDIO


def test_what_is_there_of_a_file_that_was_cut_off_is_given() -> None:
    webm = browser_file(tone(2.0, rate_hz=48_000), "webm", "libopus", 48_000)

    samples = decoded(webm[: len(webm) * 2 // 3])

    assert 0.5 < len(samples) / 16_000 < 1.9


def test_a_damaged_packet_costs_itself_alone() -> None:
    mp3 = bytearray(file_of(tone(4.0), "MP3"))
    middle = len(mp3) // 2
    mp3[middle : middle + 300] = NOISE[:300]

    assert len(decoded(bytes(mp3))) / 16_000 > 3.5


def test_more_than_the_limit_is_refused() -> None:
    with pytest.raises(Refused) as too_many:
        decoded(file_of(np.stack([tone(0.1)] * 3, axis=1), "FLAC"), max_channels=2)
    assert (too_many.value.reason, too_many.value.value) == (decode_child.TOO_MANY_CHANNELS, 3)

    with pytest.raises(Refused) as too_long:
        decoded(file_of(tone(5.0), "FLAC"), max_s=2)
    assert (too_long.value.reason, too_long.value.value) == (decode_child.TOO_LONG, 5)


def test_a_length_that_no_header_tells_is_found_out() -> None:
    adts = browser_file(tone(5.0), "adts", "aac", 24_000)

    with pytest.raises(Refused) as too_long:
        decoded(adts, max_s=2)
    assert too_long.value.reason == decode_child.TOO_LONG


def run(data: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-P", str(SCRIPT), *arguments],
        input=data,
        capture_output=True,
        check=False,
    )


def test_the_script_writes_pcm() -> None:
    done = run(file_of(tone(1.0), "FLAC"), "16000", "8", "60")

    assert (done.returncode, done.stderr) == (0, b"")
    assert abs(len(done.stdout) / 32_000 - 1.0) < 0.01


def test_the_script_says_why_it_refuses() -> None:
    done = run(b"hello", "16000", "8", "60")

    assert (done.returncode, done.stdout) == (decode_child.REFUSED, b"")
    assert done.stderr == b"no_audio 0\n"
