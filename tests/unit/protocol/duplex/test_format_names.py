from __future__ import annotations

from typing import get_args

from duologue.protocol.audio_formats import AudioFormat
from duologue.protocol.duplex.format_names import FORMAT_TYPES, SAMPLE_BYTES, duplex_name


def test_every_format_has_a_name_that_is_understood() -> None:
    for kind in get_args(AudioFormat):
        assert FORMAT_TYPES[duplex_name(kind())] == kind.__struct_config__.tag


def test_samples_have_the_size_of_their_format_by_name() -> None:
    sizes = {"pcm16": 2, "pcm_f32le": 4, "g711_ulaw": 1, "g711_alaw": 1, "opus": 1}
    assert sizes == SAMPLE_BYTES
