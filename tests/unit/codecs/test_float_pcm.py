from __future__ import annotations

import numpy as np
import pytest

from duologue.codecs.float_pcm import FloatReader, encode_float
from tests.unit.codecs.tones import tone


@pytest.mark.parametrize("size", [1, 3, 7, 4096])
def test_floats_are_the_same_samples_however_they_are_cut(size: int) -> None:
    pcm = tone(16000, 0.1)
    wire = encode_float(pcm)
    reader = FloatReader()
    pieces = [reader.read(wire[i : i + size]) for i in range(0, len(wire), size)]
    assert b"".join(pieces) == pcm
    assert reader.drop_rest() == 0


def test_what_is_out_of_range_is_clipped_and_what_is_no_number_is_silence() -> None:
    wire = np.array([2.0, -2.0, np.inf, -np.inf, np.nan], "<f4").tobytes()
    samples = np.frombuffer(FloatReader().read(wire), "<i2")
    assert samples.tolist() == [32767, -32768, 32767, -32768, 0]


def test_a_sample_that_is_not_whole_is_forgotten_when_asked() -> None:
    reader = FloatReader()
    assert reader.read(b"\0\0\0") == b""
    assert reader.drop_rest() == 3
    assert reader.read(encode_float(b"\x01\x00")) == b"\x01\x00"
