from __future__ import annotations

from duologue.clients.effects import Send, SilenceSpeaker
from duologue.protocol.commands import ClearAudio


def test_effects_are_compared_by_what_they_want() -> None:
    assert Send(ClearAudio()) == Send(ClearAudio())
    assert SilenceSpeaker() == SilenceSpeaker()
