"""Somebody who listens, and the engine that is asked."""

from __future__ import annotations

import random

from duologue.core.ids import id_maker
from duologue.engines.payloads import (
    AudioChunk,
    VoiceActivity,
)
from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.session_config import (
    SessionConfig,
    Transcription,
    TurnDetection,
)
from duologue.sessions.effects import AppendInput, Effect, SubmitRequest
from duologue.sessions.hearing.listening import (
    Listening,
)
from duologue.sessions.requests import Requests
from duologue.sessions.settings import ListeningSettings

RATE_HZ = 16000
MS = RATE_HZ // 1000


def config(
    detection: TurnDetection | None = None, transcription: Transcription | None = None
) -> SessionConfig:
    return SessionConfig(
        input_format=PcmFormat(rate=16000), turn_detection=detection, transcription=transcription
    )


class Bench:
    """Somebody who listens, and the engine that it asks."""

    def __init__(
        self,
        detection: TurnDetection | None = None,
        *,
        settings: ListeningSettings | None = None,
        transcribe: bool = False,
        partials: bool = False,
        retain: bool = True,
    ) -> None:
        self.requests = Requests("s")
        self.pipelines: dict[str, str] = {}
        self.listening = Listening(
            settings or ListeningSettings(),
            config(detection),
            self.requests,
            id_maker(random.Random(0)),
            rate_hz=RATE_HZ,
            capacity_ms=10_000,
            retain=retain,
            transcribe_always=transcribe,
            partials_always=partials,
        )

    def hear(self, ms: int) -> None:
        self.listening.append(b"\x01\x00" * (ms * MS))

    def judge_silence(self) -> None:
        """Have the detector say that nobody speaks in what it has heard so far."""
        self.listening.on_activity(VoiceActivity(0.0, self.listening.audio.next_sample))

    def begin(self, start_ms: int, *, confirm: bool = True) -> None:
        turn = self.listening.begin(start_ms * MS)
        if confirm:
            self.listening.confirm(turn)

    def effects(self) -> list[Effect]:
        return list(self.requests.take_effects())

    def fed(self, pipeline: str) -> list[tuple[int, int]]:
        """Audio that went to a pipeline's requests: milliseconds from and to."""
        fed: list[AudioChunk] = []
        for effect in self.effects():
            match effect:
                case SubmitRequest(request=request):
                    self.pipelines[request.id] = request.pipeline
                    if request.pipeline == pipeline and isinstance(request.first, AudioChunk):
                        fed.append(request.first)
                case AppendInput(request_id=request_id, payload=AudioChunk() as chunk):
                    if self.pipelines[request_id] == pipeline:
                        fed.append(chunk)
        return [span(chunk) for chunk in fed]


def span(chunk: AudioChunk) -> tuple[int, int]:
    start = chunk.start_sample // MS
    return start, start + len(chunk.pcm) // 2 // MS
