from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    DecodeSpeech,
    EndOfTurn,
    Payload,
    SpeakText,
    SpeechMark,
    TextDelta,
    TokenUsage,
    Transcript,
    VoiceActivity,
)

EXAMPLES: list[Payload] = [
    AudioChunk(b"\x01\x00\xff\x7f", 16_000, 640),
    VoiceActivity(0.75, 1280),
    EndOfTurn(0.5, 16_000),
    DecodeSpeech("partial", 16_000),
    Transcript("hello", "final", 16_000),
    ChatRequest((ChatMessage("user", "hello"),), max_tokens=64, temperature=0.5, seed=7),
    TextDelta("Grüße"),
    TokenUsage(12, 34, 5),
    SpeakText("Hello there.", 12, voice="a", speed=1.25),
    SpeechMark(12, 24_000, exact=False),
]


@pytest.mark.parametrize("payload", EXAMPLES, ids=lambda payload: type(payload).__name__)
def test_a_payload_crosses_a_process_edge_unchanged(payload: Payload) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(payload), type=Payload) == payload


def test_every_kind_of_payload_is_among_the_examples() -> None:
    assert {type(example) for example in EXAMPLES} == set(get_args(Payload))


def test_audio_travels_as_its_bytes() -> None:
    pcm = bytes(range(256)) * 5
    assert len(msgspec.msgpack.encode(AudioChunk(pcm, 16_000, 0))) < len(pcm) + 32
