"""What a recording holds of a value, with and without what was said."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from duologue.core.errors import CodecError
from duologue.core.fence import SESSION_LANE, Fence
from duologue.engines.payloads import AudioChunk, ChatMessage, ChatRequest, Transcript
from duologue.engines.ports import Ended, Outcome, Output
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import CreateResponse, ResponseParams, UpdateSession
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import ErrorBody
from duologue.protocol.session_config import FunctionTool, SemanticVad, SessionConfig
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.inputs import Rejected
from duologue.sessions.recording.packing import Content, pack, unpack

FENCE = Fence("sess_1", SESSION_LANE, 3)
SECRET = "the moon is made of cheese"
VALUES = (
    AppendAudio(audio=b"\x01\x02"),
    UpdateSession(session=SessionPatch(instructions=SECRET)),
    UpdateSession(session=DuplexPatch(instructions=SECRET)),
    CreateResponse(response=ResponseParams(instructions=SECRET, metadata={SECRET: SECRET})),
    Output("sess_1.1", FENCE, Transcript(SECRET, "final", 16_000)),
    Output("sess_1.2", FENCE, AudioChunk(b"\x00\x01", 16_000, 5)),
    Output("s", FENCE, ChatRequest((ChatMessage("user", SECRET),), 10, stop=(SECRET,))),
    Ended("sess_1.1", FENCE, Outcome.FAILED, "replica_lost", SECRET),
    Rejected(ErrorBody(type="invalid_request_error", code=ErrorCode.INVALID_VALUE, message=SECRET)),
    SessionConfig(
        instructions=SECRET,
        turn_detection=SemanticVad(),
        tools=(FunctionTool(name=SECRET, description=SECRET, parameters={SECRET: [SECRET]}),),
    ),
)


def through_json(packed: Any) -> Any:
    return json.loads(json.dumps(packed))


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_with_content_everything_comes_back(value: object) -> None:
    packed = through_json(pack(value, Content.ALL))
    assert unpack(packed) == value
    assert pack(unpack(packed), Content.ALL) == packed


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_without_content_no_word_is_left_and_it_can_be_read_all_the_same(value: object) -> None:
    packed = through_json(pack(value, Content.NONE))
    assert "moon" not in json.dumps(packed)
    again = unpack(packed)
    assert type(again) is type(value)
    assert pack(again, Content.NONE) == packed


def test_ids_numbers_and_closed_sets_stay() -> None:
    output = unpack(pack(VALUES[4], Content.NONE))
    assert output == Output("sess_1.1", FENCE, Transcript("x" * len(SECRET), "final", 16_000))


def test_audio_is_its_length_or_a_checksum_of_it() -> None:
    chunk = AudioChunk(b"\x07" * 640, 16_000)
    assert unpack(pack(chunk, Content.NONE)).pcm == bytes(640)
    one, other = (pack(AudioChunk(b * 640, 16_000), Content.TEXT) for b in (b"\x07", b"\x08"))
    assert one != other
    assert "Bwc" not in json.dumps(one)


def test_what_nobody_packed_is_refused() -> None:
    for packed in ({"$": "builtins.open", "file": "/etc/passwd"}, {"odd": 1}, {}, {"$": 5}):
        with pytest.raises(CodecError):
            unpack(packed)


def test_every_command_and_payload_can_be_packed() -> None:
    from duologue.engines.payloads import Payload
    from duologue.protocol.commands import Command
    from duologue.protocol.events import Event
    from duologue.sessions.recording.packing import _fields

    for union in (Command, Payload, Event):
        for kind in union.__args__:
            assert issubclass(kind, msgspec.Struct)
            _fields(kind)
