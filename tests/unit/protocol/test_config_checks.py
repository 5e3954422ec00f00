from __future__ import annotations

import math

import pytest

from duologue.core.errors import LimitExceeded, ProtocolError
from duologue.protocol.audio_formats import (
    AudioFormat,
    FloatPcmFormat,
    FormatPatch,
    PcmaFormat,
    PcmFormat,
    PcmuFormat,
)
from duologue.protocol.config_checks import (
    Supported,
    check_instructions,
    check_max_tokens,
    check_modalities,
    check_nesting,
    check_range,
    check_tool_choice,
    check_tools,
    check_voice,
    check_written,
    merge_format,
)
from duologue.protocol.limits import (
    MAX_INSTRUCTIONS_CHARS,
    MAX_NESTING_LEVELS,
    MAX_TOOLS,
    MAX_WRITTEN_BYTES,
)
from duologue.protocol.session_config import CustomVoice, FunctionChoice, FunctionTool


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_both_ends_of_a_range_are_allowed(value: float) -> None:
    assert check_range(value, (0.0, 1.0), "p") == value


@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, math.inf])
def test_outside_a_range_the_error_names_value_limits_and_field(value: float) -> None:
    with pytest.raises(ProtocolError, match=r"p is .*, allowed is 0.0 to 1.0 ms") as caught:
        check_range(value, (0.0, 1.0), "p", "ms")
    assert caught.value.param == "p"


def test_instructions_have_a_limit() -> None:
    assert check_instructions("x" * MAX_INSTRUCTIONS_CHARS, "p")
    with pytest.raises(LimitExceeded, match="limit is 262144 characters"):
        check_instructions("x" * (MAX_INSTRUCTIONS_CHARS + 1), "p")


def test_a_response_has_at_least_one_modality_and_none_twice() -> None:
    assert check_modalities(["text", "audio"], "p") == ("text", "audio")
    with pytest.raises(ProtocolError):
        check_modalities([], "p")
    with pytest.raises(ProtocolError):
        check_modalities(["audio", "audio"], "p")


def test_an_unknown_voice_is_refused_with_the_known_ones() -> None:
    supported = Supported(voices=frozenset({"alloy", "echo"}))
    assert check_voice("echo", supported, "p") == "echo"
    with pytest.raises(ProtocolError, match=r"no voice 'nope'; there are alloy, echo"):
        check_voice("nope", supported, "p")
    with pytest.raises(ProtocolError):
        check_voice(CustomVoice(id="nope"), supported, "p")


def test_any_voice_will_do_where_none_are_listed() -> None:
    assert check_voice(CustomVoice(id="nope"), Supported(), "p") == CustomVoice(id="nope")


def test_tools_need_names_that_can_be_told_apart() -> None:
    one, two = FunctionTool(name="a"), FunctionTool(name="b")
    assert check_tools([one, two], "p") == (one, two)
    with pytest.raises(ProtocolError) as caught:
        check_tools([one, two, one], "p")
    assert caught.value.param == "p[2].name"
    with pytest.raises(LimitExceeded):
        check_tools([FunctionTool(name="")], "p")
    with pytest.raises(LimitExceeded):
        check_tools([FunctionTool(name=str(n)) for n in range(MAX_TOOLS + 1)], "p")


def test_a_tool_choice_needs_a_tool_to_fall_on() -> None:
    tools = [FunctionTool(name="look")]
    for choice in ("auto", "none", "required", FunctionChoice(name="look")):
        assert check_tool_choice(choice, tools, "p") == choice  # type: ignore[arg-type]
    assert check_tool_choice("none", [], "p") == "none"
    with pytest.raises(ProtocolError, match="there are no tools") as caught:
        check_tool_choice("required", [], "p")
    assert caught.value.param == "p"
    with pytest.raises(ProtocolError, match="there is no tool 'go'; there are: look") as caught:
        check_tool_choice(FunctionChoice(name="go"), tools, "p")
    assert caught.value.param == "p.name"


def test_the_token_limit_leaves_room_for_an_answer() -> None:
    assert check_max_tokens("inf", "p") == "inf"
    assert check_max_tokens(1, "p") == 1
    for limit in (0, -1, 2**31, 10**400):
        with pytest.raises(ProtocolError) as refusal:
            check_max_tokens(limit, "p")
        assert len(refusal.value.message) < 200


@pytest.mark.parametrize(
    ("current", "patch", "expected"),
    [
        (PcmFormat(rate=16000), FormatPatch(), PcmFormat(rate=16000)),
        (PcmFormat(rate=16000), FormatPatch(type="audio/pcm"), PcmFormat(rate=16000)),
        (PcmFormat(), FormatPatch(rate=48000), PcmFormat(rate=48000)),
        (PcmFormat(), FormatPatch(type="audio/pcmu"), PcmuFormat()),
        (PcmuFormat(), FormatPatch(type="audio/pcma", rate=8000), PcmaFormat()),
        (PcmuFormat(), FormatPatch(rate=None), PcmuFormat()),
        (PcmaFormat(), FormatPatch(type="audio/pcm"), PcmFormat(rate=24000)),
        (PcmaFormat(), FormatPatch(type="audio/pcm", rate=8000), PcmFormat(rate=8000)),
        (PcmFormat(rate=8000), FormatPatch(type="audio/pcm_f32le"), FloatPcmFormat(rate=24000)),
        (FloatPcmFormat(), FormatPatch(rate=22050), FloatPcmFormat(rate=22050)),
    ],
)
def test_a_format_changes_only_where_it_was_asked_to(
    current: AudioFormat, patch: FormatPatch, expected: AudioFormat
) -> None:
    assert merge_format(current, patch, "p") == expected


@pytest.mark.parametrize(
    ("current", "patch"),
    [
        (PcmFormat(), FormatPatch(rate=44100)),
        (PcmFormat(), FormatPatch(rate=0)),
        (PcmuFormat(), FormatPatch(rate=16000)),
        (PcmFormat(), FormatPatch(type="audio/pcma", rate=24000)),
    ],
)
def test_a_rate_that_does_not_fit_is_refused(current: AudioFormat, patch: FormatPatch) -> None:
    with pytest.raises(ProtocolError) as caught:
        merge_format(current, patch, "session.audio.input.format")
    assert caught.value.param == "session.audio.input.format.rate"


def nest(levels: int) -> object:
    value: object = 1
    for level in range(levels):
        value = {"a": value} if level % 2 else [value, 0]
    return value


def test_json_of_a_client_may_be_so_deep_and_no_deeper() -> None:
    check_nesting(nest(MAX_NESTING_LEVELS - 1), "session.tools[0].parameters")
    with pytest.raises(LimitExceeded) as refusal:
        check_nesting(nest(MAX_NESTING_LEVELS), "session.tools[0].parameters")
    assert refusal.value.param == "session.tools[0].parameters"
    with pytest.raises(LimitExceeded):
        check_tools([FunctionTool(name="f", parameters={"a": nest(100_000)})], "session.tools")


@pytest.mark.parametrize(("text", "chars"), [("x", 1), ("\x01", 6), ("é", 2), ("😀", 4)])
def test_text_is_weighed_as_it_is_written(text: str, chars: int) -> None:
    fits = (MAX_WRITTEN_BYTES - 2) // chars
    check_written(text * fits, "item")
    with pytest.raises(LimitExceeded, match="bytes of JSON"):
        check_written(text * (fits + 1), "item")
