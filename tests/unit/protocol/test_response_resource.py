from __future__ import annotations

import msgspec

from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.response_resource import (
    ResponseAudioOutputResource,
    ResponseAudioResource,
    ResponseResource,
    StatusDetails,
)

AUDIO = ResponseAudioResource(output=ResponseAudioOutputResource(format=PcmFormat(), voice="alloy"))


def test_a_new_response_has_the_shape_that_clients_expect() -> None:
    response = ResponseResource(
        id="resp_1", status="in_progress", output_modalities=("audio",), audio=AUDIO
    )
    assert msgspec.to_builtins(response) == {
        "object": "realtime.response",
        "id": "resp_1",
        "status": "in_progress",
        "status_details": None,
        "output": (),
        "conversation_id": None,
        "output_modalities": ("audio",),
        "audio": {"output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "alloy"}},
        "max_output_tokens": "inf",
        "metadata": None,
        "usage": None,
    }


def test_why_a_response_ended_shows_only_what_there_is_to_say() -> None:
    details = StatusDetails(type="cancelled", reason="turn_detected")
    assert msgspec.json.encode(details) == b'{"type":"cancelled","reason":"turn_detected"}'
