from __future__ import annotations

import pytest

from duologue.clients.camera import frame_of
from duologue.core.errors import ConfigError
from duologue.protocol.duplex.commands import ShowFrame
from duologue.protocol.duplex.session_resource import DuplexCapabilities


def seeing(sees: bool) -> DuplexCapabilities:
    return DuplexCapabilities(
        implementation_level="turn_based_duplex",
        supports_model_native_turn_policy=False,
        supports_client_commit=True,
        supports_barge_in=True,
        supports_playback_ack=True,
        supports_audio_truncate=True,
        supports_input_sample_positions=True,
        supports_session_resume=True,
        supports_pictures=sees,
        supports_voice_cloning=False,
        supports_instructions=True,
        supports_persona_update=True,
        supports_sampling=False,
        turn_detection_types=(),
        overlap_policies=(),
        chunk_period_ms=None,
        input_sample_rate_hz=16_000,
        output_sample_rate_hz=24_000,
    )


def test_a_frame_is_shown_to_a_model_that_sees() -> None:
    assert frame_of(b"jpeg", "f1", seeing(True)) == ShowFrame(data=b"jpeg", frame_id="f1")


def test_nobody_is_shown_what_nobody_would_see() -> None:
    with pytest.raises(ConfigError, match="does not see"):
        frame_of(b"jpeg", None, seeing(False))
    with pytest.raises(ConfigError, match="duplex dialect"):
        frame_of(b"jpeg", None, None)


def test_a_name_of_a_file_is_no_picture() -> None:
    with pytest.raises(TypeError, match="a picture must be bytes, not str"):
        frame_of("photo.jpg", None, seeing(True))  # type: ignore[arg-type]
