from __future__ import annotations

from typing import Any

import msgspec
import pytest

from duologue.core.errors import ProtocolError
from duologue.gateway.catalogue import ServedModel
from duologue.gateway.chat.checks import Wanted, check
from duologue.protocol.chat_request import (
    AudioData,
    AudioOutput,
    ChatCompletionRequest,
    FunctionSpec,
    FunctionTool,
    InputAudioPart,
    StreamOptions,
    UserMessage,
    VoiceId,
)

TALKER = ServedModel("talker", {"chat": "llm", "speech": "tts"}, ("one",))
MUTE = ServedModel("mute", {"chat": "llm"}, ("one",))
TOOL = FunctionTool(function=FunctionSpec(name="f"))


def asked(**fields: Any) -> ChatCompletionRequest:
    return ChatCompletionRequest(messages=[UserMessage(content="Hi")], **fields)


def test_text_is_what_one_gets_unasked() -> None:
    assert check(asked(), TALKER) == Wanted(text=True, audio=False)
    assert check(asked(modalities=["text"], n=1), MUTE) == Wanted()


def test_a_model_that_answers_aloud_needs_no_voice_beside_it() -> None:
    omni = ServedModel("omni", {"chat": "omni"}, ("one",), answers_aloud=True)
    assert check(asked(modalities=["text", "audio"]), omni).audio


def test_what_is_heard_is_answered_aloud_where_that_is_asked_for() -> None:
    omni = ServedModel("omni", {"chat": "omni"}, ("one",), answers_aloud=True, hears=True)
    part = InputAudioPart(input_audio=AudioData(data=b"x", format="wav"))
    shown = msgspec.structs.replace(asked(), messages=[UserMessage(content=[part])])
    assert check(shown, omni) == Wanted()
    aloud = msgspec.structs.replace(shown, modalities=["text", "audio"])
    assert [check(aloud, each).audio for each in (omni, TALKER)] == [True, True]


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"modalities": ["text", "audio"]}, Wanted(audio=True, format="wav")),
        ({"modalities": ["audio"]}, Wanted(text=False, audio=True, format="wav")),
        ({"modalities": ["audio", "text"], "stream": True}, Wanted(audio=True, format="pcm16")),
        (
            {"modalities": ["text", "audio"], "audio": AudioOutput(voice="x", format="mp3")},
            Wanted(audio=True, voice="x", format="mp3"),
        ),
        (
            {"modalities": ["text", "audio"], "audio": AudioOutput(voice=VoiceId(id="y"))},
            Wanted(audio=True, voice="y", format="wav"),
        ),
        ({"audio": AudioOutput(format="mp3")}, Wanted()),
    ],
)
def test_speech_comes_where_it_is_asked_for(fields: dict[str, Any], wanted: Wanted) -> None:
    assert check(asked(**fields), TALKER) == wanted


@pytest.mark.parametrize(
    ("fields", "model", "code", "param"),
    [
        ({}, ServedModel("ears", {"transcription": "asr"}, ("x",)), "unsupported", "model"),
        ({"modalities": ["text", "audio"]}, MUTE, "unsupported", "modalities"),
        ({"modalities": ["audio"], "stream": True}, MUTE, "unsupported", "modalities"),
        ({"n": 3}, MUTE, "invalid_value", "n"),
        ({"n": 0}, MUTE, "invalid_value", "n"),
        ({"logprobs": True}, MUTE, "unsupported", "logprobs"),
        ({"top_logprobs": 2}, MUTE, "unsupported", "top_logprobs"),
        ({"stream_options": StreamOptions()}, MUTE, "invalid_value", "stream_options"),
        (
            {"modalities": ["audio"], "stream": True, "audio": AudioOutput(format="mp3")},
            TALKER,
            "invalid_value",
            "audio.format",
        ),
        (
            {"modalities": ["audio"], "tools": [TOOL], "tool_choice": "required"},
            TALKER,
            "unsupported",
            "tool_choice",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(
    fields: dict[str, Any], model: ServedModel, code: str, param: str
) -> None:
    with pytest.raises(ProtocolError) as caught:
        check(asked(**fields), model)
    assert (caught.value.code, caught.value.param) == (code, param)
