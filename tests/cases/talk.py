"""The scene of the cases: a call, a plugin that remembers its prompts, and answers by hand.

The names of the cases (C01, ...) are those of the catalogue of what breaks realtime voice systems
in the wild; each test says the sequence in its own words.
"""

from __future__ import annotations

from duologue.duplex_plugins.contract import Capabilities
from duologue.engines.payloads import AudioChunk, SpeechMark, TextDelta
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.commands import CommitAudio, CreateResponse, UpdateSession
from duologue.protocol.events import ErrorEvent
from duologue.protocol.response_events import AudioDelta, ResponseCreated, ResponseDone
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
    TranscriptionPatch,
    TurnDetectionPatch,
)
from duologue.sessions.session_maker import NO_CHANGE
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall, FakeConnection
from tests.fakes.engine import FakeEngine, FakeRequest
from tests.fakes.plugin import STAGE, FakePlugin

RATE_HZ = 24000
MS = RATE_HZ // 1000
WINDOW_MS = 32
CHUNK_MS = 100

DETECTING = ("vad", "asr", STAGE)
BY_HAND = ("asr", STAGE)

READS = Capabilities(reads_transcripts=True)


def pcm(ms: int) -> bytes:
    return b"\x10\x00" * (ms * MS)


def speech(ms: int) -> AppendAudio:
    """Audio of the person in the format of the start."""
    return AppendAudio(audio=pcm(ms))


def detection(**patch: object) -> UpdateSession:
    """Change turn detection."""
    return listening(turn_detection=TurnDetectionPatch(**patch))  # type: ignore[arg-type]


def transcription() -> UpdateSession:
    """Have the client see transcripts."""
    return listening(transcription=TranscriptionPatch())


def listening(**patch: object) -> UpdateSession:
    """Change the input half of the audio settings."""
    inp = AudioInputPatch(**patch)  # type: ignore[arg-type]
    return UpdateSession(session=SessionPatch(audio=AudioPatch(input=inp)))


def formats(inp: FormatPatch, out: FormatPatch) -> UpdateSession:
    """Change both formats."""
    audio = AudioPatch(input=AudioInputPatch(format=inp), output=AudioOutputPatch(format=out))
    return UpdateSession(session=SessionPatch(audio=audio))


class Talk(FakeCall):
    """A call whose answers a test gives by hand."""

    def __init__(
        self,
        pipelines: tuple[str, ...] = BY_HAND,
        capabilities: Capabilities | None = None,
        *,
        settings: SessionSettings | None = None,
        credit: int | None = None,
        edge_plays: bool = False,
        patch: SessionPatch = NO_CHANGE,
    ) -> None:
        self.plugin = FakePlugin(capabilities, credit=credit)
        super().__init__(
            self.plugin,
            FakeEngine(pipelines=pipelines),
            settings,
            edge_plays=edge_plays,
            patch=patch,
        )

    def stage(self) -> FakeRequest:
        """The newest answer that the engine works on."""
        return self.engine.of(STAGE)[-1]

    def answer(self, text: str, ms: int) -> str:
        """Let the newest answer say ``text`` in ``ms``, word by word; returns the response's id."""
        stage = self.stage()
        already = sum(len(p.pcm) for p in stage.delivered if isinstance(p, AudioChunk)) // 2
        start = sum(len(p.text) for p in stage.delivered if isinstance(p, TextDelta))
        self.engine.output(stage.request.id, TextDelta(text))
        for at in range(0, ms, CHUNK_MS):
            chunk = AudioChunk(pcm(min(CHUNK_MS, ms - at)), RATE_HZ)
            self.engine.output(stage.request.id, chunk)
        words = text.split(" ")
        end, step = start - 1, ms * MS // len(words)
        for number, word in enumerate(words, 1):
            end += len(word) + 1
            self.engine.output(stage.request.id, SpeechMark(end, already + number * step))
        return str(stage.request.fence.lane)

    def finish(self) -> None:
        """End the newest answer."""
        self.engine.complete(self.stage().request.id)

    def play_to_the_end(self) -> None:
        """Let so much time pass that all of an answer is sent and heard."""
        self.clock.advance(20)

    def turn(self, windows: int = 20, silence: int = 20) -> None:
        """Say something that a detector finds."""
        self.say(windows)
        self.hush(silence)

    def probe(self) -> None:
        """Hold one normal turn by hand."""
        before = len(self.client.of(ResponseDone)), len(self.client.of(ErrorEvent))
        self.send(speech(600), CommitAudio(), CreateResponse())
        self.answer("fine", 200)
        self.finish()
        self.play_to_the_end()
        assert len(self.client.of(ResponseDone)) == before[0] + 1
        assert self.client.last(ResponseDone).response.status == "completed"
        assert len(self.client.of(ErrorEvent)) == before[1]

    def done(self) -> list[tuple[str, str | None]]:
        """Status and reason of each response that has ended."""
        ends: list[tuple[str, str | None]] = []
        for event in self.client.of(ResponseDone):
            details = event.response.status_details
            ends.append((event.response.status, None if details is None else details.reason))
        return ends

    def created(self) -> list[str]:
        """Ids of all responses, in order."""
        return [event.response.id for event in self.client.of(ResponseCreated)]

    def audio_of(self, response_id: str) -> bytes:
        """All speech that was sent of a response."""
        deltas = self.client.of(AudioDelta)
        return b"".join(delta.delta for delta in deltas if delta.response_id == response_id)

    def check_accounts(self) -> None:
        """What is held is what is accounted for, and within its bounds (I4)."""
        buffer = self.machine.speaking.buffer
        assert buffer.count_held() == (buffer.held_bytes, buffer.held_events)

    def close(self) -> None:
        """Hang up: nothing may be left of the call."""
        self.check_accounts()
        self.client.reading = True
        self.client.read()
        self.session.close("closed")
        assert self.client.wire.open_responses == []
        self.check_accounts()
        assert self.machine.speaking.buffer.held_bytes == 0
        assert all(fake.cancelled for fake in self.engine.running.values())
        assert len(self.manager) == 0


def join(call: FakeCall) -> FakeConnection:
    """Let somebody else call the same server."""
    session = call.manager.open(None)
    client = FakeConnection(session)
    session.attach(client)
    return client
