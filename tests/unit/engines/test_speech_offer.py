from __future__ import annotations

from typing import Any

import msgspec
import pytest

from duologue.engines.speech_offer import SpeechOffer


def test_a_voice_speaks_at_its_own_speed_unless_more_is_said() -> None:
    offer = msgspec.convert({"voices": ["anna"]}, SpeechOffer)
    assert (offer.voices, offer.slowest, offer.fastest) == (("anna",), 1.0, 1.0)
    assert not offer.answers


@pytest.mark.parametrize(
    "given",
    [{}, {"voices": []}, {"voices": [""]}, {"voices": ["a"], "slowest": 2}, {"voice": "a"}],
    ids=str,
)
def test_an_offer_without_voices_or_with_unknown_keys_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, SpeechOffer)
