from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from openai.types.beta.realtime import ConversationItem, RealtimeResponse, Session

from duologue.protocol.audio_formats import (
    AudioFormat,
    FloatPcmFormat,
    PcmaFormat,
    PcmFormat,
    PcmuFormat,
)
from duologue.protocol.beta_objects import (
    BetaTranscriptionSession,
    beta_item,
    beta_response,
    beta_session,
)
from duologue.protocol.items import (
    FunctionCallItem,
    InputAudio,
    InputText,
    MessageItem,
    OutputAudio,
    OutputText,
)
from duologue.protocol.response_resource import (
    ResponseAudioOutputResource,
    ResponseAudioResource,
    ResponseResource,
)
from duologue.protocol.session_config import (
    CustomVoice,
    SemanticVad,
    ServerVad,
    SessionConfig,
    to_wire,
)


def plain(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def session(config: SessionConfig) -> Any:
    return plain(beta_session(to_wire(config, "sess_1", "gpt-4o-realtime-preview", 1_700_000_000)))


def test_a_session_has_one_level_and_is_one_that_the_sdk_knows() -> None:
    shown = session(
        SessionConfig(
            input_format=PcmuFormat(),
            output_format=PcmaFormat(),
            voice=CustomVoice(id="verse"),
            temperature=0.8,
            max_output_tokens=7,
        )
    )
    Session.model_validate(shown, strict=True)
    assert shown["modalities"] == ["text", "audio"]
    assert shown["input_audio_format"] == "g711_ulaw"
    assert shown["output_audio_format"] == "g711_alaw"
    assert shown["voice"] == "verse"
    assert shown["temperature"] == 0.8
    assert shown["max_response_output_tokens"] == 7
    assert shown["turn_detection"]["type"] == "server_vad"
    assert "idle_timeout_ms" not in shown["turn_detection"]
    assert "audio" not in shown
    assert "type" not in shown


@pytest.mark.parametrize(
    ("config", "key", "value"),
    [
        (SessionConfig(turn_detection=None), "turn_detection", None),
        (SessionConfig(output_modalities=("text",)), "modalities", ["text"]),
        (SessionConfig(output_modalities=("text", "audio")), "modalities", ["text", "audio"]),
        (SessionConfig(input_format=PcmFormat()), "input_audio_format", "pcm16"),
        (SessionConfig(input_format=FloatPcmFormat()), "input_audio_format", "pcm_f32le"),
    ],
)
def test_a_setting_is_shown_as_the_beta_names_it(
    config: SessionConfig, key: str, value: object
) -> None:
    assert session(config)[key] == value


@pytest.mark.parametrize("kind", get_args(AudioFormat))
def test_every_format_can_be_shown(kind: type[AudioFormat]) -> None:
    shown = session(SessionConfig(input_format=kind(), output_format=kind()))
    assert shown["input_audio_format"] == shown["output_audio_format"]
    assert "/" not in shown["input_audio_format"]


def test_what_the_client_set_is_shown_though_the_sdk_has_no_name_for_it() -> None:
    detection = ServerVad(idle_timeout_ms=5000)
    shown = session(SessionConfig(turn_detection=detection))
    assert shown["turn_detection"]["idle_timeout_ms"] == 5000
    assert session(SessionConfig(turn_detection=SemanticVad()))["turn_detection"] == {
        "type": "semantic_vad",
        "eagerness": "auto",
        "create_response": True,
        "interrupt_response": True,
    }
    assert "temperature" not in session(SessionConfig())


def test_a_session_for_transcripts_has_no_output() -> None:
    resource = to_wire(SessionConfig(kind="transcription"), "sess_1", "m", 0)
    shown = beta_session(resource)
    assert isinstance(shown, BetaTranscriptionSession)
    assert not {"voice", "output_audio_format", "modalities"} & set(plain(shown))


def test_parts_of_an_assistants_message_have_short_names() -> None:
    item = MessageItem(
        id="i", role="assistant", content=(OutputText(text="a"), OutputAudio(transcript=None))
    )
    shown = plain(beta_item(item))
    ConversationItem.model_validate(shown, strict=True)
    assert shown["content"] == [{"type": "text", "text": "a"}, {"type": "audio", "transcript": ""}]


def test_other_items_are_the_same() -> None:
    said = MessageItem(id="i", role="user", content=(InputText(text="a"), InputAudio()))
    call = FunctionCallItem(id="c", name="f", call_id="call_1")
    for item in (said, call):
        assert plain(beta_item(item)) == plain(item)


def test_a_response_has_one_level_and_is_one_that_the_sdk_knows() -> None:
    output = ResponseAudioOutputResource(format=PcmFormat(), voice=CustomVoice(id="verse"))
    response = ResponseResource(
        id="resp_1",
        status="completed",
        output=(MessageItem(id="i", role="assistant", content=(OutputText(text="a"),)),),
        output_modalities=("text",),
        audio=ResponseAudioResource(output=output),
        metadata={"k": "v"},
    )
    shown = plain(beta_response(response))
    RealtimeResponse.model_validate(shown, strict=True)
    assert shown["modalities"] == ["text"]
    assert (shown["voice"], shown["output_audio_format"]) == ("verse", "pcm16")
    assert shown["output"][0]["content"] == [{"type": "text", "text": "a"}]
    assert shown["metadata"] == {"k": "v"}
