from __future__ import annotations

import numpy as np
import pytest

from duologue.codecs.pcm import float_to_pcm, is_loud, pcm_to_float


def test_every_sample_survives_the_way_to_float_and_back() -> None:
    every = np.arange(-32768, 32768, dtype="<i2").tobytes()
    assert float_to_pcm(pcm_to_float(every)) == every


def test_full_scale_is_one() -> None:
    samples = pcm_to_float(np.array([-32768, 0, 16384], dtype="<i2").tobytes())
    assert samples.tolist() == [-1.0, 0.0, 0.5]
    assert samples.dtype == np.float32


def test_what_is_too_loud_is_clipped_and_not_wrapped_around() -> None:
    loud = np.array([1.0, 2.0, -1.5, np.inf, -np.inf], dtype=np.float32)
    assert np.frombuffer(float_to_pcm(loud), "<i2").tolist() == [
        32767,
        32767,
        -32768,
        32767,
        -32768,
    ]


def test_the_largest_floats_are_full_scale() -> None:
    most = np.finfo(np.float32).max
    found = float_to_pcm(np.array([most, -most, np.inf, -np.inf], dtype=np.float32))
    assert np.frombuffer(found, "<i2").tolist() == [32767, -32768, 32767, -32768]


def test_what_is_no_number_becomes_silence() -> None:
    assert float_to_pcm(np.array([np.nan], dtype=np.float32)) == b"\0\0"


def test_half_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="buffer size"):
        pcm_to_float(b"\0\0\0")


def test_a_quiet_room_is_not_loud_and_a_word_in_it_is() -> None:
    quiet = np.full(16000, 60, "<i2")
    assert not is_loud(quiet.tobytes(), 16000)
    assert not is_loud(b"", 16000)
    quiet[8000:8600] = 400
    assert is_loud(quiet.tobytes(), 16000)
