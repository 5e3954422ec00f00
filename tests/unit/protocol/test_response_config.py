from __future__ import annotations

import pytest

from duologue.core.errors import ClientError
from duologue.protocol.audio_formats import FormatPatch, PcmaFormat, PcmFormat
from duologue.protocol.commands import ResponseAudio, ResponseAudioOutput, ResponseParams
from duologue.protocol.config_checks import Supported
from duologue.protocol.items import ItemReference
from duologue.protocol.response_config import response_config
from duologue.protocol.session_config import FunctionTool, SessionConfig

SESSION = SessionConfig(
    instructions="be kind",
    output_format=PcmFormat(rate=16000),
    voice="echo",
    speed=1.1,
    tools=(FunctionTool(name="f"),),
    tool_choice="required",
    max_output_tokens=7,
)


def output(**fields: object) -> ResponseAudio:
    return ResponseAudio(output=ResponseAudioOutput(**fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("params", [None, ResponseParams(), ResponseParams(audio=ResponseAudio())])
def test_what_is_not_asked_for_is_as_in_the_session(params: ResponseParams | None) -> None:
    config = response_config(SESSION) if params is None else response_config(SESSION, params)
    assert config.instructions == "be kind"
    assert config.output_modalities == ("audio",)
    assert config.output_format == PcmFormat(rate=16000)
    assert config.voice == "echo"
    assert config.speed == 1.1
    assert config.tools == SESSION.tools
    assert config.tool_choice == "required"
    assert config.max_output_tokens == 7
    assert config.metadata is None
    assert config.conversation == "auto"
    assert config.input is None


def test_what_is_asked_for_holds_for_this_response() -> None:
    config = response_config(
        SESSION,
        ResponseParams(
            output_modalities=("text",),
            instructions="",
            audio=output(format=FormatPatch(type="audio/pcma"), voice="alloy"),
            tools=(),
            tool_choice="none",
            max_output_tokens="inf",
            metadata={"k": "v"},
            conversation="none",
            input=(ItemReference(id="item_1"),),
        ),
    )
    assert config.output_modalities == ("text",)
    assert config.instructions == ""
    assert config.output_format == PcmaFormat()
    assert config.voice == "alloy"
    assert config.tools == ()
    assert config.tool_choice == "none"
    assert config.max_output_tokens == "inf"
    assert config.metadata == {"k": "v"}
    assert config.conversation == "none"
    assert config.input == (ItemReference(id="item_1"),)


@pytest.mark.parametrize(
    ("params", "param"),
    [
        (ResponseParams(output_modalities=()), "response.output_modalities"),
        (ResponseParams(instructions="x" * 10**6), "response.instructions"),
        (ResponseParams(max_output_tokens=-1), "response.max_output_tokens"),
        (ResponseParams(tools=(FunctionTool(name=""),)), "response.tools[0].name"),
        (ResponseParams(audio=output(voice="nope")), "response.audio.output.voice"),
        (
            ResponseParams(audio=output(format=FormatPatch(rate=1))),
            "response.audio.output.format.rate",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(params: ResponseParams, param: str) -> None:
    with pytest.raises(ClientError) as caught:
        response_config(SESSION, params, Supported(voices=frozenset({"echo"})))
    assert caught.value.param == param
