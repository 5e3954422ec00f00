from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from duologue.engines.answer_payloads import AnswerWords, BeginAnswer, SensedSpan
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.media_payloads import (
    DrawImage,
    ImageData,
    LoraChoice,
    MakeSound,
    MakeVideo,
    SoundData,
    StepsDone,
    VideoData,
)
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    CodeFrames,
    DecodeSpeech,
    EndOfTurn,
    LockstepFrame,
    LockstepFreeze,
    LockstepNews,
    LockstepRewind,
    LockstepStart,
    LockstepTaste,
    Payload,
    SpeakText,
    SpeechMark,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
    Tools,
    ToolSpec,
    Transcript,
    VoiceActivity,
)
from duologue.engines.policy_payloads import ActionChunk, DecideActions

EXAMPLES: list[Payload] = [
    AudioChunk(b"\x01\x00\xff\x7f", 16_000, 640),
    VoiceActivity(0.75, 1280),
    EndOfTurn(0.5, 16_000),
    DecodeSpeech("partial", 16_000),
    Transcript("hello", "final", 16_000),
    ChatRequest(
        (
            ChatMessage("user", "hello", images=("data:image/png;base64,AA==",)),
            ChatMessage("user", "", recordings=(b"\0\0",)),
            ChatMessage("assistant", "", calls=(ToolCall("c1", "look", "{}"),)),
            ChatMessage("tool", "seen", call_id="c1"),
        ),
        max_tokens=64,
        temperature=0.5,
        seed=7,
        tools=Tools((ToolSpec("look", "Looks.", "{}"),), "required", "look", parallel=False),
    ),
    TextDelta("Grüße"),
    ToolCallDelta(1, "call_1", "look", '{"at":'),
    TokenUsage(12, 34, 5),
    SpeakText("Hello there.", 12, voice="a", speed=1.25),
    SpeechMark(12, 24_000, exact=False),
    CodeFrames(bytes(16), 8, heard=True, text_end=12),
    BeginAnswer(
        (1, 2, 300_000),
        "ethan",
        (SensedSpan(1, 1, bytes(8), "bfloat16", (1, 1)), SensedSpan(2, 1, bytes(8), "float32")),
    ),
    AnswerWords((7, 300_000), 12, last=True),
    LockstepStart("You are kind.", "anna", seed=7, pins_persona=True),
    LockstepRewind(31),
    LockstepFreeze(True),
    LockstepTaste(0.7),
    LockstepNews(FrameCounts(frames=12, late_frames=2), 900),
    LockstepFrame(32, b"\x01\x00", " hello", 17, (1, 2), (3, 4), rewinds=1),
    DrawImage("a cat", 64, 48, 4, 3.5, 7, lora=LoraChoice("ink", 0.5), image=b"\x89PNG", mask=b"m"),
    MakeVideo("waves", 64, 48, 9, 16, 4, 3.5, 7, source=b"ftyp", overlap=4),
    MakeSound("rain", 2.5, 4, 3.5, 7),
    StepsDone(3, 28),
    ImageData(b"\x89PNG", "png", 64, 48, partial=0),
    VideoData(b"moof", 1, 'video/mp4; codecs="avc1.42C00D"'),
    SoundData(b"\x01\x00\x02\x00", 44_100, 2),
    DecideActions((b"rgb", b"rgb"), bytes(8), "fold", 10, 7),
    ActionChunk(bytes(24), 3, 2),
]


@pytest.mark.parametrize("payload", EXAMPLES, ids=lambda payload: type(payload).__name__)
def test_a_payload_crosses_a_process_edge_unchanged(payload: Payload) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(payload), type=Payload) == payload


@pytest.mark.parametrize("payload", EXAMPLES, ids=lambda payload: type(payload).__name__)
def test_a_payload_weighs_no_less_than_what_travels(payload: Payload) -> None:
    assert payload.size_bytes() >= len(msgspec.msgpack.encode(payload))


def test_every_kind_of_payload_is_among_the_examples() -> None:
    assert {type(example) for example in EXAMPLES} == set(get_args(Payload))


def test_audio_travels_as_its_bytes() -> None:
    pcm = bytes(range(256)) * 5
    assert len(msgspec.msgpack.encode(AudioChunk(pcm, 16_000, 0))) < len(pcm) + 32


def test_only_offered_functions_may_be_called() -> None:
    functions = (ToolSpec("look"), ToolSpec("go"))
    assert Tools(functions).allows("look")
    assert not Tools(functions).allows("fly")
    assert not Tools(functions, "none").allows("look")
    assert not Tools(functions, "required", "go").allows("look")
    assert Tools(functions, "required", "go").allows("go")
    assert Tools(functions).callable
    assert not Tools(functions, "none").callable
    assert not Tools().callable
