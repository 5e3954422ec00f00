"""What stock clients put into a session, and how they must find it again.

The numbers are those of ``test_must_haves``; every event is held against the SDK's classes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from duologue.settings import Settings
from tests.conformance.sdk_schema import GA
from tests.conformance.strict_client import answers, strict_client
from tests.conformance.talking_gateway import TalkingGateway, talking_gateway

Session = dict[str, Any]


@pytest.fixture
async def gateway(settings: Settings) -> AsyncIterator[TalkingGateway]:
    async with talking_gateway(settings) as gateway:
        yield gateway


def audio(**fields: Any) -> Session:
    return {"audio": {"input": fields}}


async def updated(gateway: TalkingGateway, *sessions: Session) -> Session:
    """The session after these updates, each of which must be taken."""
    async with strict_client(gateway) as client:
        session: Session = {}
        for each in sessions:
            (event,) = await answers(client, {"type": "session.update", "session": each})
            assert event["type"] == "session.updated", event
            session = event["session"]
        return session


# 5

HARMLESS: dict[str, Session] = {
    "model": {"model": "gpt-realtime"},
    "another model": {"model": "gpt-4o-realtime-preview-2025-06-03"},
    "tracing auto": {"tracing": "auto"},
    "tracing named": {
        "tracing": {"workflow_name": "w", "group_id": "g", "metadata": {"k": {"deep": [1]}}}
    },
    "tracing off": {"tracing": None},
    "truncation auto": {"truncation": "auto"},
    "truncation off": {"truncation": "disabled"},
    "truncation by ratio": {"truncation": {"type": "retention_ratio", "retention_ratio": 0.8}},
    "truncation with limits": {
        "truncation": {
            "type": "retention_ratio",
            "retention_ratio": 0.5,
            "token_limits": {"post_instructions": 8000},
        }
    },
    "reasoning": {"reasoning": {"effort": "minimal"}},
    "no reasoning": {"reasoning": None},
    "prompt": {"prompt": {"id": "pmpt_1", "version": "2", "variables": {"name": "x"}}},
    "no prompt": {"prompt": None},
    "include": {"include": ["item.input_audio_transcription.logprobs"]},
    "include nothing": {"include": []},
    "no include": {"include": None},
    "parallel tool calls": {"parallel_tool_calls": False},
    "speed": {"audio": {"output": {"speed": 1.25}}},
    "flat speed": {"speed": 1.0},
    "near field": audio(noise_reduction={"type": "near_field"}),
    "far field": audio(noise_reduction={"type": "far_field"}),
    "no noise reduction": audio(noise_reduction=None),
    "tokens without end": {"max_output_tokens": "inf"},
    "tokens": {"max_output_tokens": 4096},
    "a key of tomorrow": {"a_key_of_tomorrow": {"deep": [1, None]}},
    "keys of tomorrow further in": {"audio": {"input": {"new": 1}, "output": {"new": 2}, "x": 3}},
    "transcription with more": audio(
        transcription={"model": "whisper-1", "keywords": ["x"], "delay": 0.5, "languages": ["en"]}
    ),
    "no tools": {"tools": []},
    "nothing": {},
}


@pytest.mark.parametrize("session", HARMLESS.values(), ids=HARMLESS)
async def test_5_what_clients_send_is_taken_whether_it_does_something_or_not(
    gateway: TalkingGateway, session: Session
) -> None:
    before = await updated(gateway, {})
    after = await updated(gateway, {"type": "realtime", **session})
    assert after["type"] == "realtime"
    assert after["audio"]["input"]["format"] == before["audio"]["input"]["format"]
    assert after["instructions"] == before["instructions"]


# 6


async def test_6_pcm_is_shown_at_24_khz_and_otherwise_only_to_who_asked(
    gateway: TalkingGateway,
) -> None:
    plain = {"type": "audio/pcm", "rate": 24000}
    for asked in ({"type": "audio/pcm"}, {"type": "audio/pcm", "rate": 24000}, {}):
        session = await updated(
            gateway, {"audio": {"input": {"format": asked}, "output": {"format": asked}}}
        )
        assert session["audio"]["input"]["format"] == plain
        assert session["audio"]["output"]["format"] == plain
    law = {"audio": {"input": {"format": {"type": "audio/pcmu"}}}}
    session = await updated(gateway, law)
    assert session["audio"]["input"]["format"] == {"type": "audio/pcmu"}
    assert session["audio"]["output"]["format"] == plain


async def test_6_another_rate_is_for_who_asked_for_it(gateway: TalkingGateway) -> None:
    async with strict_client(gateway) as client:
        wide = {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 16000}}}}
        # The SDK's classes know 24 kHz only, which is the reason for this promise.
        schema = replace(GA, kinds_read_loosely=frozenset({"session.updated"}))
        (event,) = await answers(client, {"type": "session.update", "session": wide}, schema)
        assert event["session"]["audio"]["input"]["format"]["rate"] == 16000
        assert event["session"]["audio"]["output"]["format"]["rate"] == 24000


# 7


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (None, None),
        (
            {"type": "server_vad"},
            {"create_response": True, "interrupt_response": True, "threshold": 0.5},
        ),
        (
            {"type": "server_vad", "create_response": False, "interrupt_response": False},
            {"create_response": False, "interrupt_response": False},
        ),
        (
            {"type": "semantic_vad"},
            {"create_response": True, "interrupt_response": True, "eagerness": "auto"},
        ),
        ({"type": "semantic_vad", "eagerness": "low"}, {"eagerness": "low"}),
    ],
)
async def test_7_turn_detection_is_shown_with_its_switches_filled_in(
    gateway: TalkingGateway, asked: Session | None, shown: Session | None
) -> None:
    session = await updated(gateway, audio(turn_detection=asked))
    detection = session["audio"]["input"]["turn_detection"]
    if shown is None:
        assert detection is None
        return
    assert asked is not None
    assert detection.items() >= (asked | shown).items()
    if asked["type"] == "semantic_vad":
        assert set(detection) == {"type", "eagerness", "create_response", "interrupt_response"}


# 8


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (None, None),
        ({"model": "whisper-1"}, {"model": "whisper-1", "language": None, "prompt": None}),
        (
            {"model": "m", "language": "en", "prompt": "p"},
            {"model": "m", "language": "en", "prompt": "p"},
        ),
        ({"model": "m", "language": None}, {"model": "m", "language": None, "prompt": None}),
    ],
)
async def test_8_transcription_is_shown_with_the_keys_that_every_client_knows(
    gateway: TalkingGateway, asked: Session | None, shown: Session | None
) -> None:
    session = await updated(gateway, audio(transcription=asked))
    assert session["audio"]["input"]["transcription"] == shown


# 9

CALL = {"type": "function", "name": "look_up"}
TOOL = {**CALL, "description": "d", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("choice", "voice"),
    [("auto", "one"), ("none", "alloy"), ("required", "two"), (CALL, {"id": "two"})],
)
async def test_9_choice_and_voice_are_shown_as_they_were_sent(
    gateway: TalkingGateway, choice: object, voice: object
) -> None:
    session = await updated(
        gateway,
        {"tools": [TOOL], "tool_choice": choice, "audio": {"output": {"voice": voice}}},
    )
    assert session["tool_choice"] == choice
    assert session["audio"]["output"]["voice"] == voice
    assert session["tools"] == [TOOL]
    assert (session["object"], session["type"]) == ("realtime.session", "realtime")


# 4


async def test_4_each_part_of_a_session_can_be_changed_alone(gateway: TalkingGateway) -> None:
    full: Session = {
        "instructions": "Be kind.",
        "tools": [TOOL],
        "audio": {
            "input": {
                "noise_reduction": {"type": "far_field"},
                "transcription": {"model": "m", "language": "en"},
                "turn_detection": {"type": "server_vad", "threshold": 0.7},
            },
            "output": {"voice": "two", "speed": 1.1},
        },
    }
    whole = await updated(gateway, full)
    parts = (
        {"type": "realtime", "tracing": "auto"},
        {"audio": {"output": {"speed": 1.1}}},
        {"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 0.7}}}},
        {"audio": {"input": {"transcription": {"prompt": None}}}},
        {"audio": {}},
        {"audio": {"input": None, "output": {}}},
        {"instructions": "Be kind."},
    )
    same = await updated(gateway, full, *parts)
    for unsteady in ("id", "expires_at", "tracing"):
        del whole[unsteady], same[unsteady]
    assert same == whole
