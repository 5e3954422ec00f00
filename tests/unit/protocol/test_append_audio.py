from __future__ import annotations

import msgspec

from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio


def test_audio_that_says_its_place_is_audio_all_the_same() -> None:
    placed = AppendPlacedAudio(audio=b"\x01\x00", start_sample=7)
    assert isinstance(placed, AppendAudio)
    assert msgspec.structs.asdict(placed)["start_sample"] == 7
    assert "start_sample" not in AppendAudio.__struct_fields__
