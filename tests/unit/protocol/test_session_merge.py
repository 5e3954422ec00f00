from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ClientError, LimitExceeded, ProtocolError
from duologue.protocol.audio_formats import FormatPatch, PcmFormat, PcmuFormat
from duologue.protocol.config_checks import Supported
from duologue.protocol.session_config import (
    FunctionTool,
    NoiseReduction,
    RetentionRatio,
    SemanticVad,
    ServerVad,
    SessionConfig,
    TokenLimits,
    TraceLabels,
    Transcription,
    to_wire,
)
from duologue.protocol.session_merge import merge
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
    TurnDetectionPatch,
)
from tests.unit.protocol.messages import of

PHONE = SessionConfig(
    instructions="be kind",
    input_format=PcmuFormat(),
    output_format=PcmFormat(rate=8000),
    turn_detection=ServerVad(threshold=0.7, idle_timeout_ms=6000),
    transcription=Transcription(model="m", language="en"),
    noise_reduction=NoiseReduction(type="near_field"),
    voice="echo",
    speed=1.2,
    tools=(FunctionTool(name="hang_up"),),
    tool_choice="required",
    max_output_tokens=100,
    tracing="auto",
    truncation="disabled",
)


def patch(wire: dict[str, Any]) -> SessionPatch:
    return msgspec.convert(wire, SessionPatch)


def input_patch(wire: dict[str, Any]) -> SessionPatch:
    return patch({"audio": {"input": wire}})


def within_range() -> st.SearchStrategy[SessionPatch]:
    """Patches of which most can be applied to some configuration."""
    detection = st.builds(
        TurnDetectionPatch,
        type=st.sampled_from(["server_vad", "semantic_vad"]),
        create_response=st.none() | st.booleans(),
    )
    vad = st.builds(
        TurnDetectionPatch,
        type=st.just("server_vad"),
        threshold=st.none() | st.floats(0, 1),
        silence_duration_ms=st.integers(10, 2000),
    )
    inputs = st.builds(
        AudioInputPatch,
        format=st.none() | of(FormatPatch),
        turn_detection=st.none() | detection | vad,
        noise_reduction=st.none() | of(NoiseReduction),
    )
    outputs = st.builds(AudioOutputPatch, speed=st.none() | st.floats(0.25, 1.5))
    return st.builds(
        SessionPatch,
        instructions=st.none() | st.text(max_size=9),
        audio=st.builds(AudioPatch, input=inputs, output=outputs),
        max_output_tokens=st.none() | st.just("inf") | st.integers(1, 9),
    )


PATCHES = within_range() | of(SessionPatch)


def merged(config: SessionConfig, change: SessionPatch) -> SessionConfig | None:
    try:
        return merge(config, change)
    except ClientError:
        return None


@given(PATCHES)
def test_an_empty_patch_changes_nothing(change: SessionPatch) -> None:
    config = merged(PHONE, change) or PHONE
    assert merge(config, SessionPatch()) == config


@given(PATCHES)
def test_the_same_patch_twice_is_the_same_as_once(change: SessionPatch) -> None:
    once = merged(PHONE, change)
    if once is not None:
        assert merge(once, change) == once


@given(PATCHES, PATCHES)
def test_a_patch_leaves_alone_what_it_does_not_name(
    first: SessionPatch, second: SessionPatch
) -> None:
    config = merged(SessionConfig(), first) or PHONE
    audio_only = SessionPatch(audio=second.audio)
    after = merged(config, audio_only)
    if after is not None:
        assert (
            dataclasses.replace(
                after,
                input_format=config.input_format,
                output_format=config.output_format,
                turn_detection=config.turn_detection,
                transcription=config.transcription,
                noise_reduction=config.noise_reduction,
                voice=config.voice,
                speed=config.speed,
            )
            == config
        )


@given(PATCHES)
def test_whatever_was_merged_can_be_shown_and_read_again(change: SessionPatch) -> None:
    config = merged(PHONE, change)
    if config is not None:
        wire = to_wire(config, "sess_1", "m", 1)
        assert msgspec.json.decode(msgspec.json.encode(wire), type=type(wire)) == wire


def test_a_refused_patch_applies_none_of_its_valid_parts() -> None:
    before = dataclasses.replace(PHONE)
    with pytest.raises(ProtocolError):
        merge(
            before,
            patch({"instructions": "new", "audio": {"output": {"speed": 9.0}}}),
        )
    assert before == PHONE


def test_a_null_switches_off_what_can_be_off() -> None:
    off = merge(
        PHONE,
        patch(
            {
                "tracing": None,
                "audio": {
                    "input": {
                        "turn_detection": None,
                        "transcription": None,
                        "noise_reduction": None,
                    }
                },
            }
        ),
    )
    assert off.turn_detection is None
    assert off.transcription is None
    assert off.noise_reduction is None
    assert off.tracing is None


def test_a_null_returns_the_rest_to_the_default() -> None:
    names = (
        "instructions",
        "output_modalities",
        "tools",
        "tool_choice",
        "max_output_tokens",
        "truncation",
    )
    wire: dict[str, Any] = dict.fromkeys(names)
    wire["audio"] = {"output": {"voice": None, "speed": None}}
    cleared, fresh = merge(PHONE, patch(wire)), SessionConfig()
    for name in (*names, "voice", "speed"):
        assert getattr(cleared, name) == getattr(fresh, name)


@pytest.mark.parametrize(
    "change",
    [
        {"instructions": "x"},
        {"tools": []},
        {"audio": None},
        {"audio": {"input": None, "output": None}},
        {"audio": {"input": {"format": None, "turn_detection": {"threshold": 0.1}}}},
        {"audio": {"output": {"format": None, "voice": "alloy"}}},
    ],
)
def test_formats_never_drift(change: dict[str, Any]) -> None:
    after = merge(PHONE, patch(change))
    assert after.input_format == PcmuFormat()
    assert after.output_format == PcmFormat(rate=8000)


def test_one_field_of_turn_detection_leaves_the_others() -> None:
    after = merge(PHONE, input_patch({"turn_detection": {"threshold": 0.2}}))
    assert after.turn_detection == ServerVad(threshold=0.2, idle_timeout_ms=6000)


def test_another_type_of_turn_detection_starts_from_its_own_defaults() -> None:
    semantic = merge(PHONE, input_patch({"turn_detection": {"type": "semantic_vad"}}))
    assert semantic.turn_detection == SemanticVad()
    back = merge(semantic, input_patch({"turn_detection": {"type": "server_vad"}}))
    assert back.turn_detection == ServerVad()


def test_a_field_of_semantic_detection_needs_no_type_while_it_is_on() -> None:
    semantic = dataclasses.replace(PHONE, turn_detection=SemanticVad(create_response=False))
    after = merge(semantic, input_patch({"turn_detection": {"eagerness": "high"}}))
    assert after.turn_detection == SemanticVad(eagerness="high", create_response=False)


def test_switching_detection_on_needs_its_type() -> None:
    off = dataclasses.replace(PHONE, turn_detection=None)
    with pytest.raises(ProtocolError) as caught:
        merge(off, input_patch({"turn_detection": {"threshold": 0.5}}))
    assert caught.value.code == "missing_required_parameter"
    assert caught.value.param == "session.audio.input.turn_detection.type"


def test_transcription_is_switched_on_by_an_empty_object() -> None:
    assert merge(SessionConfig(), input_patch({"transcription": {}})).transcription == (
        Transcription()
    )


def test_a_null_field_of_transcription_clears_that_field() -> None:
    after = merge(PHONE, input_patch({"transcription": {"language": None, "model": None}}))
    assert after.transcription == Transcription(model="default")


def test_a_second_update_with_tracing_alone_resets_nothing() -> None:
    after = merge(PHONE, patch({"type": "realtime", "tracing": {"workflow_name": "w"}}))
    assert after == dataclasses.replace(PHONE, tracing=TraceLabels(workflow_name="w"))


DETECTION = "session.audio.input.turn_detection"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"audio": {"input": {"turn_detection": {"threshold": 1.1}}}}, f"{DETECTION}.threshold"),
        ({"audio": {"input": {"turn_detection": {"threshold": -1}}}}, f"{DETECTION}.threshold"),
        (
            {"audio": {"input": {"turn_detection": {"prefix_padding_ms": -1}}}},
            f"{DETECTION}.prefix_padding_ms",
        ),
        (
            {"audio": {"input": {"turn_detection": {"silence_duration_ms": 0}}}},
            f"{DETECTION}.silence_duration_ms",
        ),
        (
            {"audio": {"input": {"turn_detection": {"idle_timeout_ms": 1}}}},
            f"{DETECTION}.idle_timeout_ms",
        ),
        (
            {"audio": {"input": {"turn_detection": {"eagerness": "low"}}}},
            f"{DETECTION}.eagerness",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "threshold": 0.5}}}},
            f"{DETECTION}.threshold",
        ),
        ({"audio": {"output": {"speed": 0.1}}}, "session.audio.output.speed"),
        ({"audio": {"output": {"format": {"rate": 1}}}}, "session.audio.output.format.rate"),
        ({"audio": {"input": {"format": {"rate": 16000}}}}, "session.audio.input.format.rate"),
        ({"output_modalities": []}, "session.output_modalities"),
        ({"max_output_tokens": 0}, "session.max_output_tokens"),
        (
            {"truncation": {"type": "retention_ratio", "retention_ratio": 2}},
            "session.truncation.retention_ratio",
        ),
    ],
)
def test_a_value_out_of_range_is_refused_by_its_name(change: dict[str, Any], param: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        merge(PHONE, patch(change))
    assert caught.value.param == param
    assert caught.value.code == "invalid_value"


def test_not_a_number_is_out_of_range() -> None:
    change = SessionPatch(audio=AudioPatch(output=AudioOutputPatch(speed=math.nan)))
    with pytest.raises(ProtocolError):
        merge(PHONE, change)


def test_a_long_text_is_refused_by_its_limit() -> None:
    with pytest.raises(LimitExceeded, match="limit is"):
        merge(PHONE, SessionPatch(instructions="x" * 1_000_000))


def test_what_the_server_cannot_do_is_refused() -> None:
    supported = Supported(voices=frozenset({"echo"}), turn_detection=frozenset({"server_vad"}))
    with pytest.raises(ProtocolError, match="there is server_vad") as caught:
        merge(PHONE, input_patch({"turn_detection": {"type": "semantic_vad"}}), supported)
    assert caught.value.param == f"{DETECTION}.type"
    with pytest.raises(ProtocolError) as caught:
        merge(PHONE, patch({"audio": {"output": {"voice": "nope"}}}), supported)
    assert caught.value.param == "session.audio.output.voice"


def test_a_default_that_is_not_listed_stays_until_somebody_asks() -> None:
    supported = Supported(voices=frozenset({"echo"}))
    assert merge(SessionConfig(), SessionPatch(), supported).voice == "alloy"


def test_a_share_of_the_context_may_be_kept() -> None:
    ratio = {"type": "retention_ratio", "retention_ratio": 0.8}
    assert merge(PHONE, patch({"truncation": ratio})).truncation == RetentionRatio(
        retention_ratio=0.8
    )


# The kind of session


def test_a_session_for_transcription_always_transcribes() -> None:
    first = merge(SessionConfig(), SessionPatch(type="transcription"))
    assert (first.kind, first.transcription) == ("transcription", Transcription())
    named = merge(first, input_patch({"transcription": {"model": "m", "language": "en"}}))
    assert named.transcription == Transcription(model="m", language="en")
    assert merge(named, input_patch({"transcription": None})).transcription == named.transcription


def test_a_session_for_transcription_stays_one() -> None:
    config = merge(SessionConfig(), SessionPatch(type="transcription"))
    assert merge(config, SessionPatch(type="transcription")) == config
    with pytest.raises(ProtocolError) as refusal:
        merge(config, SessionPatch(type="realtime"))
    assert refusal.value.param == "session.type"


def test_without_a_recogniser_there_is_no_session_for_transcription() -> None:
    with pytest.raises(ProtocolError) as refusal:
        merge(SessionConfig(), SessionPatch(type="transcription"), Supported(transcribes=False))
    assert refusal.value.param == "session.type"


@pytest.mark.parametrize(
    ("patch", "param"),
    [
        (SessionPatch(instructions="\x01" * 200_000), "session"),
        (
            SessionPatch(
                tools=tuple(FunctionTool(name=f"f{n}", description="d" * 100_000) for n in range(8))
            ),
            "session",
        ),
        (SessionPatch(tracing=TraceLabels(workflow_name="w" * 800_000)), "session"),
        (
            SessionPatch(tracing=TraceLabels(metadata={"a": json.loads("[" * 99 + "]" * 99)})),
            "session.tracing.metadata",
        ),
    ],
)
def test_a_session_must_fit_into_one_message_to_a_client(patch: SessionPatch, param: str) -> None:
    with pytest.raises(LimitExceeded) as refusal:
        merge(SessionConfig(), patch)
    assert refusal.value.param == param


def test_a_limit_of_the_conversation_must_leave_room_for_one() -> None:
    def limited(tokens: int) -> SessionPatch:
        limits = TokenLimits(post_instructions=tokens)
        return SessionPatch(truncation=RetentionRatio(retention_ratio=0.5, token_limits=limits))

    patch = limited(100)
    assert merge(SessionConfig(), patch).truncation == patch.truncation
    with pytest.raises(ProtocolError) as refusal:
        merge(SessionConfig(), limited(99))
    assert refusal.value.param == "session.truncation.token_limits.post_instructions"
    shown = to_wire(SessionConfig(truncation=RetentionRatio(retention_ratio=0.5)), "s", "m", 0)
    assert b'"truncation":{"type":"retention_ratio","retention_ratio":0.5}' in msgspec.json.encode(
        shown
    )


@pytest.mark.parametrize(
    ("patch", "param", "code"),
    [
        (
            SessionPatch(audio=AudioPatch(output=AudioOutputPatch(voice="echo"))),
            "session.audio.output.voice",
            "cannot_update_voice",
        ),
        (SessionPatch(instructions="Sing."), "session.instructions", "cannot_update_instructions"),
        (SessionPatch(instructions=None), "session.instructions", "cannot_update_instructions"),
    ],
)
def test_a_model_that_has_spoken_stays_who_it_is_where_it_cannot_change(
    patch: SessionPatch, param: str, code: str
) -> None:
    config = SessionConfig(instructions="Be kind.", voice="alloy")
    merge(config, patch)
    with pytest.raises(ProtocolError) as caught:
        merge(config, patch, Supported(persona_stays=True))
    assert (caught.value.param, caught.value.code) == (param, code)


def test_a_model_that_has_spoken_may_be_told_what_it_was_told() -> None:
    config = SessionConfig(instructions="Be kind.", voice="echo")
    same = AudioPatch(output=AudioOutputPatch(voice="echo", speed=1.2))
    patch = SessionPatch(instructions="Be kind.", audio=same)
    assert merge(config, patch, Supported(persona_stays=True)).speed == 1.2
    deaf = Supported(persona_stays=True, reads_instructions=False)
    assert merge(config, SessionPatch(instructions="Sing."), deaf).instructions == "Sing."
