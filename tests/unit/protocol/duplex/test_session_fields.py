from __future__ import annotations

from typing import Any

import msgspec
import pytest

from duologue.core.errors import ProtocolError
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.duplex.session_fields import SessionFields, format_type


def patch(**fields: Any) -> Any:
    return msgspec.convert(fields, SessionFields).patch()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, msgspec.UNSET),
        ({"input_audio_format": "pcm16"}, FormatPatch(type="audio/pcm")),
        ({"sample_rate_hz": 8000}, FormatPatch(rate=8000)),
        (
            {"input_audio_format": {"format": "g711_alaw", "sample_rate": 8000}},
            FormatPatch(type="audio/pcma", rate=8000),
        ),
        (
            {"input_audio_format": "pcm16", "sample_rate_hz": 8000},
            FormatPatch(type="audio/pcm", rate=8000),
        ),
        (
            {"input_audio_format": "g711_ulaw", "audio": {"input": {"format": "pcm16"}}},
            FormatPatch(type="audio/pcm"),
        ),
        ({"input_audio_format": None, "sample_rate_hz": None}, msgspec.UNSET),
    ],
)
def test_a_format_may_stand_in_many_places(fields: Any, expected: Any) -> None:
    assert patch(**fields).audio.input.format == expected


@pytest.mark.parametrize("name", ["inf", "infinity", "unlimited"])
def test_no_limit_has_many_names(name: str) -> None:
    assert patch(max_response_output_tokens=name).max_output_tokens == "inf"
    assert patch(max_output_tokens=5, max_tokens=name).max_output_tokens == 5


def test_a_format_that_nobody_knows_is_refused_with_those_that_are() -> None:
    with pytest.raises(ProtocolError) as caught:
        format_type("mp3", "here")
    assert caught.value.param == "here"
    assert "g711_ulaw" in caught.value.message


def test_tools_may_stand_apart() -> None:
    tool = {"type": "function", "name": "look"}
    assert patch(extra_body={"realtime_tools": [tool]}).tools[0].name == "look"
