"""Judged by libsndfile where it knows a format, by libav's decoders where it does not."""

from __future__ import annotations

import gc
import io
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from duologue.codecs.containers.encoder import AudioFileEncoder
from duologue.codecs.containers.formats import OutputFormat
from duologue.codecs.containers.wav import HEADER_BYTES, wav_header
from tests.fakes.sound_files import RATE_HZ, level, loudest_hz, tone

COMPRESSED = (OutputFormat.MP3, OutputFormat.OPUS, OutputFormat.AAC, OutputFormat.FLAC)
PCM = tone(2.0).tobytes()
PIECE = 9600
"""200 ms, as a voice gives them."""


def encoded(audio_format: OutputFormat, pcm: bytes = PCM, rate_hz: int = RATE_HZ) -> list[bytes]:
    encoder = AudioFileEncoder(audio_format, rate_hz)
    written = [encoder.encode(pcm[at : at + PIECE]) for at in range(0, len(pcm), PIECE)]
    return [*written, encoder.finish()]


def decoded(data: bytes) -> tuple[np.ndarray, int]:
    with av.open(io.BytesIO(data)) as file:
        rate = file.streams.audio[0].rate
        mono = av.AudioResampler("s16", "mono", rate)
        frames = [each for frame in file.decode(audio=0) for each in mono.resample(frame)]
    return np.concatenate([frame.to_ndarray()[0] for frame in frames]), rate


@pytest.mark.parametrize("audio_format", COMPRESSED)
def test_what_comes_out_is_what_went_in(audio_format: OutputFormat) -> None:
    samples, rate = decoded(b"".join(encoded(audio_format)))

    # Codecs look ahead and fill up their last frame: at most 75 ms.
    assert 2.0 <= len(samples) / rate <= 2.075
    assert abs(loudest_hz(samples, rate) - 440) < 2
    assert level(samples) == pytest.approx(8000, rel=0.05)


@pytest.mark.parametrize("audio_format", [OutputFormat.MP3, OutputFormat.OPUS])
def test_another_library_reads_it(audio_format: OutputFormat) -> None:
    samples, rate = soundfile.read(io.BytesIO(b"".join(encoded(audio_format))))

    assert 2.0 <= len(samples) / rate <= 2.075


@pytest.mark.parametrize("audio_format", COMPRESSED)
def test_bytes_come_out_as_speech_goes_in(audio_format: OutputFormat) -> None:
    written = encoded(audio_format)

    assert all(written[:-1])
    begun, rate = decoded(b"".join(written[:5]))
    assert len(begun) / rate > 0.8


def test_flac_loses_nothing() -> None:
    samples, _ = decoded(b"".join(encoded(OutputFormat.FLAC)))

    assert samples.tobytes() == PCM


def test_c73_a_wav_header_comes_once() -> None:
    written = encoded(OutputFormat.WAV)

    assert b"".join(written) == wav_header(RATE_HZ) + PCM
    assert written[0][:HEADER_BYTES] == wav_header(RATE_HZ)


def test_c73_a_wav_header_is_exact_where_the_length_is_known() -> None:
    encoder = AudioFileEncoder(OutputFormat.WAV, RATE_HZ, len(PCM))

    assert encoder.encode(PCM) + encoder.finish() == wav_header(RATE_HZ, len(PCM)) + PCM


def test_c73_pcm_is_as_long_as_the_data_of_the_wav() -> None:
    pcm, wav = b"".join(encoded(OutputFormat.PCM)), b"".join(encoded(OutputFormat.WAV))

    assert len(pcm) == len(wav) - HEADER_BYTES


@pytest.mark.parametrize("audio_format", OutputFormat)
def test_no_speech_is_a_file_too(audio_format: OutputFormat) -> None:
    encoder = AudioFileEncoder(audio_format, RATE_HZ)

    nothing = encoder.finish()

    assert (nothing == wav_header(RATE_HZ)) is (audio_format is OutputFormat.WAV)


@pytest.mark.parametrize(
    ("audio_format", "rate_hz", "written_hz"),
    [(OutputFormat.OPUS, 22_050, 48_000), (OutputFormat.MP3, 96_000, 48_000)],
)
def test_a_rate_that_a_codec_does_not_know_is_converted(
    audio_format: OutputFormat, rate_hz: int, written_hz: int
) -> None:
    pcm = tone(1.0, rate_hz=rate_hz).tobytes()

    samples, rate = decoded(b"".join(encoded(audio_format, pcm, rate_hz)))

    assert rate == written_hz
    assert abs(loudest_hz(samples, rate) - 440) < 2


@pytest.mark.parametrize("audio_format", OutputFormat)
def test_two_channels_stay_apart_at_any_cut(audio_format: OutputFormat) -> None:
    rate = 44_100
    stereo = np.stack([tone(1.0, 300, rate), tone(1.0, 2000, rate)], axis=1).tobytes()
    encoder = AudioFileEncoder(audio_format, rate, channels=2)
    pieces = [encoder.encode(stereo[at : at + 9_601]) for at in range(0, len(stereo), 9_601)]
    data = b"".join([*pieces, encoder.finish()])

    if audio_format is OutputFormat.PCM:
        assert data == stereo
        return
    with av.open(io.BytesIO(data)) as file:
        written_hz = file.streams.audio[0].rate
        planar = av.AudioResampler("s16p", "stereo", written_hz)
        frames = [each for frame in file.decode(audio=0) for each in planar.resample(frame)]
    sides = np.concatenate([frame.to_ndarray() for frame in frames], axis=1)
    assert [round(loudest_hz(side, written_hz) / 10) for side in sides] == [30, 200]
    assert 1.0 <= sides.shape[1] / written_hz <= 1.075


@pytest.mark.parametrize("audio_format", COMPRESSED)
def test_pieces_may_end_within_a_sample(audio_format: OutputFormat) -> None:
    whole, odd = AudioFileEncoder(audio_format, RATE_HZ), AudioFileEncoder(audio_format, RATE_HZ)

    at_once = whole.encode(PCM) + whole.finish()
    in_pieces = b"".join(odd.encode(PCM[at : at + 4801]) for at in range(0, len(PCM), 4801))

    ours, _ = decoded(in_pieces + odd.finish())
    theirs, _ = decoded(at_once)
    assert len(ours) == len(theirs)


def test_a_file_may_be_let_go_of_at_any_time_and_takes_its_codec_with_it() -> None:
    before = threads()
    gc.disable()  # an idle server collects rarely
    try:
        for audio_format in OutputFormat:
            encoder = AudioFileEncoder(audio_format, RATE_HZ)
            assert encoder.compresses is (audio_format in COMPRESSED)
            encoder.encode(PCM)
            del encoder
            assert threads() == before
    finally:
        gc.enable()


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))
