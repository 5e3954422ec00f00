from __future__ import annotations

import msgspec
import pytest

from duologue.protocol.session_patch import SessionPatch, TurnDetectionPatch


def test_an_empty_patch_is_an_empty_object() -> None:
    assert msgspec.json.encode(SessionPatch()) == b"{}"


def test_absent_and_null_are_told_apart() -> None:
    absent = msgspec.json.decode(b'{"audio":{"input":{}}}', type=SessionPatch)
    null = msgspec.json.decode(b'{"audio":{"input":{"turn_detection":null}}}', type=SessionPatch)
    assert absent.audio
    assert absent.audio.input
    assert absent.audio.input.turn_detection is msgspec.UNSET
    assert null.audio
    assert null.audio.input
    assert null.audio.input.turn_detection is None


def test_what_stock_clients_send_and_we_do_not_use_is_ignored() -> None:
    sent = b"""{"type":"realtime","model":"m","include":[],"parallel_tool_calls":true,
        "prompt":{"id":"p"},"reasoning":{"effort":"low"},"foo":1,"max_output_tokens":"inf",
        "audio":{"input":{"transcription":{"model":"m","delay":"low"}},"bar":{}}}"""
    patch = msgspec.json.decode(sent, type=SessionPatch)
    assert patch.max_output_tokens == "inf"


def test_a_misspelt_key_of_turn_detection_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="silence_ms"):
        msgspec.json.decode(b'{"silence_ms":500}', type=TurnDetectionPatch)
