from __future__ import annotations

import msgspec
import pytest

from duologue.engines.media_payloads import (
    DrawImage,
    ImageData,
    MakeVideo,
    SoundData,
    StepsDone,
    VideoData,
)
from duologue.engines.payload_base import OVERHEAD_BYTES, PayloadBase
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    CodeFrames,
    DecodeSpeech,
    HeardDetails,
    HeardWord,
    ListenOptions,
    LockstepFrame,
    LockstepStart,
    Payload,
    SpeakText,
    SpeechMark,
    TextDelta,
    TokenUsage,
    ToolCall,
    Tools,
    ToolSpec,
    Transcript,
    VoiceActivity,
)

MUCH = 10_000


@pytest.mark.parametrize(
    "payload",
    [
        AudioChunk(bytes(MUCH), 16_000),
        TextDelta("x" * MUCH),
        SpeakText("x" * MUCH, 8),
        SpeakText("", 8, instructions="x" * MUCH),
        DecodeSpeech("final", 0, ListenOptions(prompt="x" * MUCH)),
        Transcript("", "final", 0, HeardDetails((HeardWord("x" * MUCH, 0, 1, 0.5),))),
        ChatRequest((ChatMessage("user", "x" * MUCH),), 10),
        ChatRequest((ChatMessage("user", "", images=("x" * MUCH,)),), 10),
        ChatRequest((ChatMessage("user", "", calls=(ToolCall("c", "f", "x" * MUCH),)),), 10),
        ChatRequest((), 10, tools=Tools((ToolSpec("f", "x" * MUCH),))),
        ChatRequest((), 10, schema="x" * MUCH),
        CodeFrames(bytes(MUCH), 8),
        LockstepStart(log=bytes(MUCH)),
        LockstepFrame(1, bytes(MUCH)),
        DrawImage("", 64, 48, 4, 3.5, 7, mask=bytes(MUCH)),
        MakeVideo("", 64, 48, 9, 16, 4, 3.5, 7, source=bytes(MUCH)),
        ImageData(bytes(MUCH), "png", 64, 48),
        VideoData(bytes(MUCH), 1, ""),
        SoundData(bytes(MUCH), 44_100, 2),
    ],
)
def test_whatever_a_payload_holds_counts_wherever_it_stands(payload: Payload) -> None:
    assert MUCH + OVERHEAD_BYTES <= payload.size_bytes() < MUCH + 5 * OVERHEAD_BYTES


def test_a_payload_that_nobody_has_heard_of_has_a_size_and_a_cost() -> None:
    class Part(PayloadBase, frozen=True):
        name: str

    class New(PayloadBase, frozen=True):
        number: int
        parts: tuple[Part, ...]
        data: bytes

    new = New(7, (Part("ab"), Part("c")), b"12345")
    assert new.size_bytes() == 3 * OVERHEAD_BYTES + 3 + 5 + 2 * 8
    assert new.cost() == 1


def test_both_ends_of_a_link_find_the_same_size() -> None:
    prompt = ChatRequest((ChatMessage("user", "Grüße", images=("a", "b")),), 10, stop=("x",))
    there = msgspec.msgpack.decode(msgspec.msgpack.encode(prompt), type=Payload)
    assert there.size_bytes() == prompt.size_bytes()


def test_audio_weighs_as_its_fields_would() -> None:
    chunk = AudioChunk(bytes(640), 16_000, 5)
    assert chunk.size_bytes() == PayloadBase.size_bytes(chunk)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (AudioChunk(bytes(1280), 16_000), 40),
        (AudioChunk(bytes(4800), 24_000), 100),
        (AudioChunk(b"", 24_000), 0),
        (TextDelta("a whole sentence counts as one"), 1),
        (VoiceActivity(0.5, 640), 1),
        (SpeechMark(10, 2400), 0),
        (CodeFrames(bytes(48), 8, text_end=3), 3),
        (CodeFrames(b"", 8, text_end=3), 0),
        (TokenUsage(10, 20), 0),
        (StepsDone(1, 2), 0),
    ],
)
def test_audio_costs_its_length_and_all_else_one_unless_it_only_describes(
    payload: Payload, expected: int
) -> None:
    assert payload.cost() == expected


@pytest.mark.parametrize(("rate_hz", "samples"), [(22_050, 256), (24_000, 10), (8_000, 160)])
def test_pieces_of_audio_cost_as_much_together_as_their_whole(rate_hz: int, samples: int) -> None:
    pieces = [
        AudioChunk(bytes(2 * samples), rate_hz, start)
        for start in range(0, 40 * rate_hz // samples * samples, samples)
    ]
    whole = AudioChunk(bytes(2 * samples * len(pieces)), rate_hz)
    assert sum(piece.cost() for piece in pieces) == whole.cost() >= 39_900
