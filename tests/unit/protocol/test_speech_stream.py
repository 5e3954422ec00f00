from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ProtocolError
from duologue.protocol.speech_stream import (
    AppendText,
    CancelSpeech,
    CloseSpeech,
    ConfigureSpeech,
    FinishText,
    FlushText,
    SpeechCommand,
    decode_speech_command,
    no_binary,
)


@pytest.mark.parametrize(
    ("message", "command"),
    [
        (
            b'{"type":"session.config","voice":"one","speed":2,"audio":"base64","seed":1}',
            ConfigureSpeech(voice="one", speed=2.0, audio="base64"),
        ),
        (
            b'{"type":"input.text","text":"Hi.","event_id":"e1"}',
            AppendText(event_id="e1", text="Hi."),
        ),
        (b'{"type":"input.flush"}', FlushText()),
        (b'{"type":"input.done"}', FinishText()),
        (b'{"type":"input.cancel"}', CancelSpeech()),
        (b'{"type":"session.close"}', CloseSpeech()),
    ],
)
def test_each_message_is_read(message: bytes, command: SpeechCommand) -> None:
    assert decode_speech_command(message) == command


@pytest.mark.parametrize(
    ("message", "code", "param", "event_id"),
    [
        (b"", "invalid_json", None, None),
        (b"{", "invalid_json", None, None),
        (b"[]", "invalid_request", None, None),
        (b'{"text":"Hi."}', "missing_required_parameter", "type", None),
        (b'{"type":"input.audio"}', "unknown_event_type", "type", None),
        (b'{"type":"input.text","event_id":"e1"}', "missing_required_parameter", "text", "e1"),
        (b'{"type":"input.text","text":7}', "invalid_value", "text", None),
        (b'{"type":"session.config","audio":"tape"}', "invalid_value", "audio", None),
        (b'{"type":"session.config","speed":"fast"}', "invalid_value", "speed", None),
    ],
)
def test_what_is_no_message_is_refused(
    message: bytes, code: str, param: str | None, event_id: str | None
) -> None:
    with pytest.raises(ProtocolError) as refused:
        decode_speech_command(message)

    assert (refused.value.code, refused.value.param) == (code, param)
    assert refused.value.event_id == event_id


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_nothing_that_comes_in_is_an_accident(message: bytes) -> None:
    with suppress(ProtocolError):
        decode_speech_command(message)


def test_binary_messages_are_refused_with_what_to_send() -> None:
    assert "JSON" in no_binary().message
