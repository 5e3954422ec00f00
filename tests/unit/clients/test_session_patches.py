from __future__ import annotations

import msgspec
import pytest

from duologue.clients.session_patches import SessionChanges, session_patch
from duologue.protocol.audio_formats import PcmFormat, PcmuFormat
from duologue.protocol.commands import UpdateSession
from duologue.protocol.json_codec import decode_command, encode_command
from duologue.protocol.session_config import SemanticVad, ServerVad, SessionConfig, Transcription
from duologue.protocol.session_merge import merge
from duologue.protocol.session_patch import TurnDetectionPatch

START = SessionConfig()


def merged(**changes: object) -> SessionConfig:
    """What a server makes of it, over the wire."""
    patch = session_patch(**changes)  # type: ignore[arg-type]
    command = decode_command(encode_command(UpdateSession(session=patch)))
    assert isinstance(command, UpdateSession)
    return merge(START, command.session)


def test_nothing_given_changes_nothing() -> None:
    assert merged() == START


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"instructions": "Be kind."}, {"instructions": "Be kind."}),
        ({"voice": "v"}, {"voice": "v"}),
        ({"speed": 1.25}, {"speed": 1.25}),
        ({"output_modalities": ["text"]}, {"output_modalities": ("text",)}),
        ({"turn_detection": None}, {"turn_detection": None}),
        ({"turn_detection": "semantic_vad"}, {"turn_detection": SemanticVad()}),
        (
            {"turn_detection": TurnDetectionPatch(type="server_vad", silence_duration_ms=900)},
            {"turn_detection": ServerVad(silence_duration_ms=900)},
        ),
        ({"transcription": True}, {"transcription": Transcription()}),
        ({"transcription": False}, {"transcription": None}),
        ({"input_format": PcmuFormat()}, {"input_format": PcmuFormat()}),
        ({"output_format": PcmFormat(rate=16000)}, {"output_format": PcmFormat(rate=16000)}),
        ({"tool_choice": "none"}, {"tool_choice": "none"}),
        ({"max_output_tokens": 50}, {"max_output_tokens": 50}),
    ],
)
def test_each_word_changes_one_thing(
    changes: dict[str, object], expected: dict[str, object]
) -> None:
    before = {name: getattr(START, name) for name in START.__dataclass_fields__}
    assert merged(**changes) == SessionConfig(**{**before, **expected})  # type: ignore[arg-type]


def test_every_change_is_tested_here() -> None:
    tested = {"instructions", "voice", "speed", "output_modalities", "turn_detection"}
    tested |= {"transcription", "input_format", "output_format", "tool_choice"}
    tested |= {"max_output_tokens", "tools"}
    assert SessionChanges.__optional_keys__ == tested


def test_tools_become_a_tuple() -> None:
    assert session_patch(tools=[]).tools == ()
    assert session_patch().tools is msgspec.UNSET
