from __future__ import annotations

import msgspec
import pytest

from duologue.clients.session_patches import SessionChanges, check_plain, session_patch
from duologue.core.errors import ConfigError
from duologue.protocol.audio_formats import OpusFormat, PcmFormat, PcmuFormat
from duologue.protocol.client_dialects import CLIENT_DIALECTS
from duologue.protocol.commands import UpdateSession
from duologue.protocol.duplex.json_codec import decode_duplex_command
from duologue.protocol.duplex.session_merge import duplex_default, merge_duplex
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
        ({"input_format": OpusFormat(rate=48000)}, {"input_format": OpusFormat(rate=48000)}),
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
    tested |= {"max_output_tokens", "tools"} | DUPLEX.keys()
    assert SessionChanges.__optional_keys__ == tested


DUPLEX = {
    "overlap_policy": "barge_in_on_speech",
    "overlap_barge_in_ms": 300,
    "playback_commit_policy": "ack_only",
    "auto_response": False,
    "idle_timeout_s": 60.0,
}


def test_settings_of_the_duplex_dialect_travel_in_it_and_are_refused_elsewhere() -> None:
    patch = session_patch(instructions="Be kind.", **DUPLEX)  # type: ignore[arg-type]
    written = CLIENT_DIALECTS["duplex", "json"].encode_command(UpdateSession(session=patch))
    command = decode_duplex_command(written)
    assert isinstance(command, UpdateSession)
    config = merge_duplex(duplex_default(START), command.session)  # type: ignore[arg-type]
    assert config.duplex is not None
    assert config.instructions == "Be kind."
    assert {name: getattr(config.duplex, name) for name in DUPLEX} == DUPLEX
    with pytest.raises(ConfigError, match="dialect='duplex'"):
        check_plain(patch)
    check_plain(session_patch(instructions="Be kind."))
    check_plain(None)


def test_functions_become_definitions() -> None:
    def look() -> None:
        """Look."""

    (tool,) = session_patch(tools=[look]).tools  # type: ignore[misc]
    assert (tool.name, tool.description) == ("look", "Look.")


def test_tools_become_a_tuple() -> None:
    assert session_patch(tools=[]).tools == ()
    assert session_patch().tools is msgspec.UNSET
