from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.protocol.audio_formats import PcmaFormat, PcmFormat
from duologue.protocol.duplex.session_fields import FormatObject
from duologue.protocol.duplex.wire_commands import (
    ALIASES,
    SIGNALLED,
    AppendHints,
    CommitFields,
    SignalFields,
    placed_audio,
)


def test_no_name_leads_in_a_circle() -> None:
    assert not set(ALIASES.values()) & set(ALIASES)
    assert "turn.signal" not in SIGNALLED


def test_a_message_in_an_envelope_keeps_the_envelopes_id_and_its_own_type() -> None:
    signal = SignalFields(event="barge_in", event_id="e", payload={"type": "x", "item_id": "i"})
    assert signal.message() == {"type": "barge_in", "event_id": "e", "item_id": "i"}


def test_the_first_name_of_a_choice_counts() -> None:
    fields = CommitFields(response_create=False, create_response=True)
    assert fields.command().response_create is False


def test_bytes_are_what_the_client_says_they_are() -> None:
    hints = AppendHints(format=FormatObject(type="pcm16", sample_rate_hz=8000), sample_rate=16000)
    assert placed_audio(hints, b"").declared == PcmFormat(rate=8000)
    assert placed_audio(AppendHints(format="g711_alaw"), b"").declared == PcmaFormat()
    with pytest.raises(ProtocolError):
        placed_audio(AppendHints(format="pcm16", sample_rate_hz=11025), b"")
