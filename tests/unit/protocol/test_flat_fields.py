from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given

from duologue.core.errors import ProtocolError
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.commands import (
    CreateResponse,
    ResponseAudio,
    ResponseAudioOutput,
    ResponseParams,
    UpdateSession,
)
from duologue.protocol.errors import ErrorCode
from duologue.protocol.flat_fields import FlatCreateResponse, FlatSession, FlatUpdate
from duologue.protocol.json_codec import decode_command
from duologue.protocol.session_config import CustomVoice, FunctionChoice, SessionConfig
from duologue.protocol.session_merge import merge
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
    TranscriptionPatch,
    TurnDetectionPatch,
)
from tests.unit.protocol.messages import of


def patch(session: dict[str, Any]) -> SessionPatch:
    update = decode_command(msgspec.json.encode({"type": "session.update", "session": session}))
    assert isinstance(update, UpdateSession)
    assert type(update.session) is SessionPatch
    return update.session


def params(response: dict[str, Any]) -> ResponseParams:
    create = decode_command(msgspec.json.encode({"type": "response.create", "response": response}))
    assert isinstance(create, CreateResponse)
    assert type(create.response) is ResponseParams
    return create.response


def test_a_flat_session_is_the_nested_one_in_other_words() -> None:
    assert patch(
        {
            "modalities": ["text", "audio"],
            "voice": "verse",
            "speed": 1.25,
            "instructions": "Be kind.",
            "input_audio_format": "pcm16",
            "output_audio_format": "g711_ulaw",
            "input_audio_transcription": {"model": "whisper-1"},
            "input_audio_noise_reduction": None,
            "turn_detection": {"type": "server_vad", "threshold": 0.6},
            "temperature": 0.8,
            "max_response_output_tokens": 100,
        }
    ) == SessionPatch(
        output_modalities=("audio",),
        instructions="Be kind.",
        audio=AudioPatch(
            input=AudioInputPatch(
                format=FormatPatch(type="audio/pcm", rate=24000),
                transcription=TranscriptionPatch(model="whisper-1"),
                noise_reduction=None,
                turn_detection=TurnDetectionPatch(type="server_vad", threshold=0.6),
            ),
            output=AudioOutputPatch(
                format=FormatPatch(type="audio/pcmu"), voice="verse", speed=1.25
            ),
        ),
        temperature=0.8,
        max_output_tokens=100,
    )


@pytest.mark.parametrize("names", [["text"], ["audio"], [], ["audio", "audio"]])
def test_modalities_that_are_not_both_are_left_as_they_are(names: list[str]) -> None:
    assert patch({"modalities": names}).output_modalities == tuple(names)
    assert params({"modalities": names}).output_modalities == tuple(names)


def test_the_nested_form_counts_where_both_are_given() -> None:
    session = patch(
        {
            "voice": "flat",
            "modalities": ["text"],
            "output_modalities": ["audio"],
            "audio": {"output": {"voice": "nested"}, "input": None},
        }
    )
    assert session.output_modalities == ("audio",)
    assert session.audio
    assert session.audio.output
    assert session.audio.output.voice == "nested"
    response = params({"voice": "flat", "audio": {"output": {"voice": {"id": "nested"}}}})
    assert response.audio
    assert response.audio.output
    assert response.audio.output.voice == CustomVoice(id="nested")


def test_null_means_what_it_means_in_the_nested_form() -> None:
    config = merge(
        SessionConfig(voice="verse", temperature=1.0),
        patch(
            {
                "turn_detection": None,
                "input_audio_format": None,
                "modalities": None,
                "voice": None,
                "temperature": None,
                "max_response_output_tokens": None,
            }
        ),
    )
    assert config == SessionConfig(turn_detection=None)


def test_a_flat_request_is_the_nested_one_in_other_words() -> None:
    assert params(
        {
            "modalities": ["audio", "text"],
            "voice": "verse",
            "output_audio_format": "g711_alaw",
            "temperature": 0.7,
            "max_response_output_tokens": "inf",
            "metadata": {"k": "v"},
        }
    ) == ResponseParams(
        output_modalities=("audio",),
        audio=ResponseAudio(
            output=ResponseAudioOutput(format=FormatPatch(type="audio/pcma"), voice="verse")
        ),
        temperature=0.7,
        max_output_tokens="inf",
        metadata={"k": "v"},
    )


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "name": "f"},
        {"type": "function", "function": {"name": "f"}},
        {"type": "function", "name": "f", "function": {"name": "g"}},
    ],
)
def test_a_function_may_be_chosen_in_either_form(choice: dict[str, Any]) -> None:
    assert patch({"tool_choice": choice}).tool_choice == FunctionChoice(name="f")
    assert params({"tool_choice": choice}).tool_choice == FunctionChoice(name="f")


@pytest.mark.parametrize("choice", [{"type": "function"}, {"type": "function", "function": {}}])
def test_a_choice_without_a_name_is_refused(choice: dict[str, Any]) -> None:
    for decode, where in ((patch, "session"), (params, "response")):
        with pytest.raises(ProtocolError) as refusal:
            decode({"tool_choice": choice})
        assert refusal.value.code == ErrorCode.MISSING_PARAMETER
        assert str(refusal.value.param).startswith(f"{where}.tool_choice")


def test_the_session_of_transcripts_had_an_event_of_its_own() -> None:
    session = {"input_audio_transcription": {"model": "m"}, "include": ["x"]}
    update = decode_command(
        msgspec.json.encode({"type": "transcription_session.update", "session": session})
    )
    assert update == UpdateSession(
        session=msgspec.structs.replace(patch(session), type="transcription")
    )


@given(of(SessionPatch))
def test_a_nested_session_is_left_as_it_is(nested: SessionPatch) -> None:
    fields = {name: getattr(nested, name) for name in SessionPatch.__struct_fields__}
    assert FlatUpdate(session=FlatSession(**fields)).command() == UpdateSession(session=nested)


def test_a_request_without_a_body_stays_without() -> None:
    assert FlatCreateResponse(event_id="e").command() == CreateResponse(event_id="e")
