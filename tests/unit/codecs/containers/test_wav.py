"""Judged by the standard library's ``wave`` and by libsndfile."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.codecs.containers.wav import (
    HEADER_BYTES,
    UNKNOWN_SIZE,
    read_plain_wav,
    wav_header,
    write_sizes,
)
from tests.fakes.sound_files import file_of, tone

PCM = tone(0.1).tobytes()


def test_a_header_with_a_length_is_exact() -> None:
    header = wav_header(24_000, len(PCM))

    assert len(header) == HEADER_BYTES
    with wave.open(io.BytesIO(header + PCM)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        assert file.readframes(file.getnframes()) == PCM


def test_a_header_says_how_many_channels_there_are() -> None:
    pcm = np.stack([tone(0.1), tone(0.1, 880)], axis=1).tobytes()

    with wave.open(io.BytesIO(wav_header(44_100, len(pcm), 2) + pcm)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (44_100, 2, 2)
        assert file.readframes(file.getnframes()) == pcm


def test_a_header_without_a_length_says_that_nobody_knows() -> None:
    header = wav_header(24_000)

    assert struct.unpack_from("<I", header, 4) == (UNKNOWN_SIZE,)
    assert struct.unpack_from("<I", header, 40) == (UNKNOWN_SIZE,)


def test_sizes_are_written_once_they_are_known() -> None:
    file = bytearray(wav_header(24_000) + PCM)
    write_sizes(file)
    assert bytes(file) == wav_header(24_000, len(PCM)) + PCM


def test_our_own_streams_are_read_back() -> None:
    wav = read_plain_wav(wav_header(24_000) + PCM)

    assert wav is not None
    assert (wav.rate_hz, wav.channels, bytes(wav.pcm)) == (24_000, 1, PCM)


def test_channels_stay_interleaved() -> None:
    samples = np.stack([tone(0.1), tone(0.1, 880)], axis=1)

    wav = read_plain_wav(file_of(samples, "WAV"))

    assert wav is not None
    assert (wav.channels, bytes(wav.pcm)) == (2, samples.tobytes())


def test_the_extensible_form_and_chunks_before_the_sound_are_read() -> None:
    wav = read_plain_wav(file_of(np.stack([tone(0.1)] * 8, axis=1), "WAVEX"))
    assert wav is not None
    assert wav.channels == 8

    plain = wav_header(24_000, len(PCM)) + PCM
    odd = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    with_list = read_plain_wav(plain[:12] + odd + plain[12:])
    assert with_list is not None
    assert bytes(with_list.pcm) == PCM


@pytest.mark.parametrize("subtype", ["PCM_24", "FLOAT", "ULAW", "PCM_U8"])
def test_other_encodings_are_for_somebody_else(subtype: str) -> None:
    assert read_plain_wav(file_of(tone(0.1), "WAV", subtype)) is None


def test_a_file_that_was_cut_off_gives_whole_samples() -> None:
    wav = read_plain_wav((wav_header(24_000, len(PCM)) + PCM)[:-3])

    assert wav is not None
    assert bytes(wav.pcm) == PCM[:-4]


@given(st.integers(0, HEADER_BYTES - 1), st.binary(min_size=1, max_size=4))
def test_a_damaged_header_is_never_an_exception(place: int, damage: bytes) -> None:
    data = bytearray(wav_header(24_000, len(PCM)) + PCM)
    data[place : place + len(damage)] = damage

    wav = read_plain_wav(bytes(data))

    assert wav is None or len(wav.pcm) % (2 * wav.channels) == 0
