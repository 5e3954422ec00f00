from __future__ import annotations

from typing import Any

import msgspec

from duologue.protocol.audio_formats import PcmFormat, PcmuFormat
from duologue.protocol.session_config import (
    CustomVoice,
    FunctionChoice,
    SemanticVad,
    SessionConfig,
    Transcription,
    to_wire,
)


def shown(config: SessionConfig) -> Any:
    return msgspec.to_builtins(to_wire(config, "sess_1", "duologue", 1_900_000_000))


def test_the_default_session_is_what_strict_clients_accept() -> None:
    assert shown(SessionConfig()) == {
        "type": "realtime",
        "object": "realtime.session",
        "id": "sess_1",
        "model": "duologue",
        "expires_at": 1_900_000_000,
        "instructions": "",
        "output_modalities": ("audio",),
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "transcription": None,
                "noise_reduction": None,
                "turn_detection": {
                    "type": "server_vad",
                    "threshold": 0.5,
                    "prefix_padding_ms": 300,
                    "silence_duration_ms": 500,
                    "idle_timeout_ms": None,
                    "create_response": True,
                    "interrupt_response": True,
                },
            },
            "output": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "voice": "alloy",
                "speed": 1.0,
            },
        },
        "tools": (),
        "tool_choice": "auto",
        "max_output_tokens": "inf",
        "tracing": None,
        "truncation": "auto",
    }


def test_transcription_shows_three_keys_and_no_other() -> None:
    audio = shown(SessionConfig(transcription=Transcription(language="en")))["audio"]
    assert audio["input"]["transcription"] == {
        "model": "default",
        "language": "en",
        "prompt": None,
    }


def test_semantic_detection_shows_only_its_own_keys() -> None:
    audio = shown(SessionConfig(turn_detection=SemanticVad(eagerness="low")))["audio"]
    assert audio["input"]["turn_detection"] == {
        "type": "semantic_vad",
        "eagerness": "low",
        "create_response": True,
        "interrupt_response": True,
    }


def test_detection_that_is_off_is_null() -> None:
    assert shown(SessionConfig(turn_detection=None))["audio"]["input"]["turn_detection"] is None


def test_each_direction_shows_its_own_format() -> None:
    audio = shown(SessionConfig(input_format=PcmuFormat(), output_format=PcmFormat(rate=16000)))[
        "audio"
    ]
    assert audio["input"]["format"] == {"type": "audio/pcmu"}
    assert audio["output"]["format"] == {"type": "audio/pcm", "rate": 16000}


def test_objects_are_shown_only_where_the_client_gave_objects() -> None:
    session = shown(SessionConfig(voice=CustomVoice(id="v1"), tool_choice=FunctionChoice(name="f")))
    assert session["audio"]["output"]["voice"] == {"id": "v1"}
    assert session["tool_choice"] == {"type": "function", "name": "f"}


def test_a_transcription_session_has_no_output() -> None:
    session = shown(SessionConfig(kind="transcription"))
    assert session["type"] == "transcription"
    assert "output" not in session["audio"]
