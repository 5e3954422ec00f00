"""All that a new speech model adds: how its halves are loaded, and this one name for a pipeline."""

from __future__ import annotations

from duologue.engines.runners.speech.loading import SpeechSettings, speech_runner
from tests.fakes.speech_model import FakeCodec, FakeTalker

VOICE = speech_runner(
    SpeechSettings, lambda values: FakeTalker(values.slots), lambda values: FakeCodec(values.slots)
)
