"""Good messages of the dialects, one of each kind at least, for a mutator to spoil."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

ITEM, RESPONSE = "item_of_the_answer", "resp_of_the_answer"
"""To be replaced by the ids of the latest answer."""

_AUDIO = base64.b64encode(b"\x10\x00" * 240).decode()
_OPUS = {"type": "audio/opus"}
_FLOATS = {"type": "audio/pcm_f32le", "rate": 16000}
_TOOL = {
    "type": "function",
    "name": "look_up",
    "description": "Looks something up.",
    "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
}
_SERVER_VAD = {
    "type": "server_vad",
    "threshold": 0.5,
    "prefix_padding_ms": 300,
    "silence_duration_ms": 500,
    "idle_timeout_ms": 6000,
    "create_response": True,
    "interrupt_response": True,
}


def _item(role: str, *content: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": list(content), **more}


_ITEMS = (
    _item("system", {"type": "input_text", "text": "Be brief."}),
    _item("user", {"type": "input_text", "text": "hello"}, id="item_1"),
    _item("user", {"type": "input_audio", "audio": _AUDIO, "transcript": "hello"}),
    _item(
        "user",
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
        {"type": "input_text", "text": "what is it?"},
    ),
    _item("assistant", {"type": "output_text", "text": "Yes."}, status="completed"),
    _item("assistant", {"type": "output_audio", "transcript": "Yes."}, object="realtime.item"),
    {"type": "function_call", "name": "look_up", "call_id": "call_1", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "found"},
)

_COMMON: Sequence[dict[str, Any]] = (
    {"type": "input_audio_buffer.append", "audio": _AUDIO},
    {"event_id": "mine", "type": "input_audio_buffer.append", "audio": _AUDIO},
    {"type": "input_audio_buffer.commit", "event_id": "mine"},
    {"type": "input_audio_buffer.clear"},
    {"type": "output_audio_buffer.clear"},
    {"type": "conversation.item.retrieve", "item_id": "item_1"},
    {"type": "conversation.item.delete", "item_id": "item_1"},
    {
        "type": "conversation.item.truncate",
        "item_id": "item_1",
        "content_index": 0,
        "audio_end_ms": 100,
    },
    {"type": "conversation.item.retrieve", "item_id": ITEM},
    {"type": "conversation.item.delete", "item_id": ITEM},
    {
        "type": "conversation.item.truncate",
        "item_id": ITEM,
        "content_index": 0,
        "audio_end_ms": 50,
    },
    {"type": "response.cancel", "response_id": RESPONSE},
    {"type": "response.cancel", "event_id": "mine"},
    {"type": "response.cancel", "response_id": "resp_1"},
    {"type": "response.create"},
    *({"type": "conversation.item.create", "event_id": "mine", "item": item} for item in _ITEMS),
    {"type": "conversation.item.create", "previous_item_id": "root", "item": _ITEMS[0]},
    {"type": "conversation.item.create", "previous_item_id": "item_1", "item": _ITEMS[1]},
)

_GA: Sequence[dict[str, Any]] = (
    {
        "type": "session.update",
        "event_id": "mine",
        "session": {
            "type": "realtime",
            "model": "m",
            "instructions": "Be kind.",
            "output_modalities": ["audio"],
            "tools": [_TOOL],
            "tool_choice": {"type": "function", "name": "look_up"},
            "parallel_tool_calls": True,
            "max_output_tokens": "inf",
            "tracing": {"workflow_name": "w", "metadata": {"k": [1]}},
            "truncation": {"type": "retention_ratio", "retention_ratio": 0.8},
            "reasoning": {"effort": "low"},
            "prompt": {"id": "p", "version": "1", "variables": {"a": "b"}},
            "include": ["item.input_audio_transcription.logprobs"],
            "audio": {
                "input": {
                    "format": {"type": "audio/pcm", "rate": 24000},
                    "noise_reduction": {"type": "near_field"},
                    "transcription": {"model": "m", "language": "en", "prompt": "p"},
                    "turn_detection": _SERVER_VAD,
                },
                "output": {
                    "format": {"type": "audio/pcmu"},
                    "voice": {"id": "alloy"},
                    "speed": 1.1,
                },
            },
        },
    },
    {
        "type": "session.update",
        "session": {
            "audio": {
                "input": {
                    "turn_detection": {"type": "semantic_vad", "eagerness": "low"},
                    "noise_reduction": None,
                }
            },
            "tracing": "auto",
        },
    },
    {"type": "session.update", "session": {"audio": {"input": {"turn_detection": None}}}},
    {"type": "session.update", "session": {"audio": {"input": {"format": _OPUS}}}},
    {"type": "session.update", "session": {"audio": {"output": {"format": _OPUS}}}},
    {"type": "session.update", "session": {"audio": {"input": {"format": _FLOATS}}}},
    {
        "type": "response.create",
        "event_id": "mine",
        "response": {
            "output_modalities": ["text"],
            "instructions": "Be brief.",
            "audio": {"output": {"format": {"type": "audio/pcm", "rate": 16000}, "voice": "alloy"}},
            "tools": [_TOOL],
            "tool_choice": "required",
            "max_output_tokens": 100,
            "metadata": {"client_event_id": "x"},
            "conversation": "none",
            "input": [{"type": "item_reference", "id": "item_1"}, *_ITEMS],
        },
    },
    {"type": "response.create", "response": {"conversation": "none", "input": []}},
)

_BETA: Sequence[dict[str, Any]] = (
    {
        "type": "session.update",
        "event_id": "mine",
        "session": {
            "modalities": ["text", "audio"],
            "instructions": "Be kind.",
            "voice": "alloy",
            "speed": 1.2,
            "input_audio_format": "pcm16",
            "output_audio_format": "g711_ulaw",
            "input_audio_transcription": {"model": "whisper-1"},
            "input_audio_noise_reduction": {"type": "far_field"},
            "turn_detection": _SERVER_VAD,
            "tools": [_TOOL],
            "tool_choice": "auto",
            "temperature": 0.8,
            "max_response_output_tokens": "inf",
        },
    },
    {"type": "session.update", "session": {"turn_detection": None, "voice": None}},
    {
        "type": "conversation.item.create",
        "item": _item("assistant", {"type": "text", "text": "Yes."}),
    },
    {
        "type": "response.create",
        "event_id": "mine",
        "response": {
            "modalities": ["text"],
            "instructions": "Be brief.",
            "voice": "verse",
            "output_audio_format": "pcm16",
            "tools": [_TOOL],
            "tool_choice": {"type": "function", "function": {"name": "look_up"}},
            "temperature": 0.7,
            "max_response_output_tokens": 100,
            "conversation": "auto",
            "metadata": {"a": "b"},
            "input": [_item("user", {"type": "input_text", "text": "hello"})],
        },
    },
)

_DUPLEX: Sequence[dict[str, Any]] = (
    {
        "type": "session.update",
        "event_id": "mine",
        "session": {
            "model": "m",
            "modalities": ["text", "audio"],
            "input_audio_format": "pcm16",
            "output_audio_format": "pcm_f32le",
            "sample_rate_hz": 16000,
            "audio": {"input": {"sample_rate_hz": 16000}, "output": {"sample_rate_hz": 24000}},
            "turn_detection": None,
            "instructions": "Be kind.",
            "voice": "alloy",
            "temperature": 0.7,
            "overlap_policy": "barge_in_on_speech",
            "playback_commit_policy": "ack_only",
            "idle_timeout_s": 600,
            "top_k": None,
            "seed": None,
            "extra_body": {"auto_response": False},
        },
    },
    {"type": "session.update", "session": {"overlap_policy": "listen_only"}},
    {
        "type": "input_audio_buffer.append",
        "audio": _AUDIO,
        "format": "pcm16",
        "sample_rate_hz": 24000,
        "duration_ms": 10,
        "audio_end_ms": 10,
        "is_speech": True,
    },
    {"type": "input_audio_buffer.commit", "final": True, "response_create": True},
    {"type": "input.commit", "create_response": False},
    {"type": "session.event_ack", "server_event_seq": 1},
    {
        "type": "playback.ack",
        "event_id": "mine",
        "played_ms": 40.5,
        "committed_ms": 20,
        "response_id": RESPONSE,
        "item_id": ITEM,
        "truncate": False,
    },
    {"type": "audio.playback_ack", "played_ms": 10, "truncate": True},
    {"type": "session.heartbeat", "event_id": "mine"},
    {"type": "barge_in"},
    {"type": "video.frame", "event_id": "mine", "data": "/9j/2Q==", "frame_id": "f1"},
    {"type": "input.cancel"},
    {"type": "input.text.append", "text": "hello"},
    {"type": "turn.signal", "event": "user_started"},
    {"type": "turn.signal", "event": "playback.ack", "payload": {"played_ms": 5}},
    {"type": "turn.signal", "event": "session.update", "payload": {"session": {"voice": "alloy"}}},
    {
        "type": "session.resume",
        "session_id": "sess_1",
        "resume_token": "t",
        "last_received_server_event_seq": 3,
    },
)

MESSAGES: Mapping[str, Sequence[dict[str, Any]]] = {
    "realtime": (*_COMMON, *_GA),
    "beta": (*_COMMON, *_BETA),
    "duplex": (*_COMMON, *_DUPLEX),
}
"""By family of dialects. Each family is also sent the others', since clients mix them up."""
