from __future__ import annotations

from typing import get_args

from duologue.protocol.audio_formats import AudioFormat
from duologue.protocol.duplex.format_names import FORMAT_TYPES, duplex_name


def test_every_format_has_a_name_that_is_understood() -> None:
    for kind in get_args(AudioFormat):
        assert FORMAT_TYPES[duplex_name(kind())] == kind.__struct_config__.tag
