"""Voices behind any server that speaks ``POST /audio/speech`` and answers with raw PCM, streamed.

A thread per job asks for one clause after the other. This module must not know who listens.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import Annotated, cast

import msgspec

from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import EngineError
from duologue.engines.payloads import AudioChunk, SpeakText, SpeechMark
from duologue.engines.runners.apart import step_apart
from duologue.engines.runners.background import OutputFeed
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.http_stream import HttpPost, Upstream, read_api_key
from duologue.engines.runners.registry import RunnerType, Wake

RATE_HZ = 24_000
"""What such servers send as ``pcm``: s16le, mono."""

Seconds = Annotated[float, msgspec.Meta(gt=0, le=600)]

_WAITING_PIECES = 8
"""A piece is at most a third of a second: what is further ahead stays in the connection."""
_WAITING_CLAUSES = 256


class SpeechUrlSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``openai_speech``.

    Args:
        base_url: Up to and with the version.
        model: As the server calls it.
        voice: For clauses that ask for none.
        api_key_file: A file that holds the key and nothing else; empty: none is sent.
    """

    base_url: str
    model: str
    voice: str
    api_key_file: str = ""
    connect_timeout_s: Seconds = 5.0
    silence_timeout_s: Seconds = 30.0


class _Ask(msgspec.Struct):
    model: str
    input: str
    voice: str
    speed: float
    response_format: str = "pcm"
    stream_format: str = "audio"
    instructions: str | msgspec.UnsetType = msgspec.UNSET


class _Speech:
    """A job: clauses that wait for their turn, the one being spoken, and what has come of it."""

    def __init__(self, wake: Wake) -> None:
        self.feed = OutputFeed(wake, _WAITING_PIECES)
        self.clauses: queue.Queue[SpeakText | None] = queue.Queue(maxsize=_WAITING_CLAUSES)
        self.post: HttpPost | None = None
        self.finished = False


class SpeechUrlRunner:
    """Lets others speak. One piece a step, so that credit holds."""

    def __init__(self, settings: SpeechUrlSettings, upstream: Upstream, wake: Wake) -> None:
        self.max_batch = 16
        self._settings = settings
        self._upstream = upstream
        self._wake = wake

    def warm_up(self) -> None:
        """Nothing is asked of a server that may cost money."""

    def open(self, job: Job) -> None:
        """Start the job's thread."""
        job.state = speech = _Speech(self._wake)
        threading.Thread(target=self._speak_all, args=(speech,), name="speech", daemon=True).start()

    def ready(self, job: Job) -> bool:
        """A clause is waiting, or sound has come."""
        speech = cast(_Speech, job.state)
        return bool(
            job.inputs or speech.feed.has_news() or (job.input_ended and not speech.finished)
        )

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Ask for what is new; hand out what has come."""
        return step_apart(self._step_one, jobs)

    def close(self, job: Job) -> None:
        """Hang up."""
        speech = cast(_Speech, job.state)
        speech.feed.stop()
        if not speech.finished and not speech.clauses.full():
            speech.clauses.put(None)
        if speech.post is not None:
            speech.post.abort()
        job.state = None

    def _step_one(self, job: Job) -> Step:
        speech = cast(_Speech, job.state)
        while job.inputs and not speech.clauses.full():
            clause = job.inputs.popleft()
            if not isinstance(clause, SpeakText):
                kind = type(clause).__name__
                return Step(error=EngineError(f"a synthesiser reads SpeakText, not {kind}"))
            speech.clauses.put(clause)
        if job.input_ended and not job.inputs and not speech.finished and not speech.clauses.full():
            speech.finished = True
            speech.clauses.put(None)
        return speech.feed.take(most=1)

    def _speak_all(self, speech: _Speech) -> None:
        """Speak the clauses of one job, in its thread."""
        feed = speech.feed
        sample = 0
        try:
            while (clause := speech.clauses.get()) is not None and not feed.stopped:
                if clause.text:
                    sample = self._speak(clause, speech, sample)
                feed.put(SpeechMark(clause.text_end, sample))
            feed.end()
        except EngineError as exc:
            feed.end(exc)
        finally:
            feed.end(EngineError("the speech could not be read"))

    def _speak(self, clause: SpeakText, speech: _Speech, sample: int) -> int:
        """Return the sample at which the clause ends."""
        voice = clause.voice if clause.voice not in (None, "default") else self._settings.voice
        ask = _Ask(
            self._settings.model,
            clause.text,
            voice or "",
            clause.speed,
            instructions=clause.instructions or msgspec.UNSET,
        )
        speech.post = HttpPost(self._upstream, "/audio/speech", msgspec.json.encode(ask))
        if speech.feed.stopped:
            return sample
        rest = b""
        for data in speech.post.chunks():
            data = rest + data
            whole = len(data) - len(data) % SAMPLE_BYTES
            data, rest = data[:whole], data[whole:]
            if data:
                speech.feed.put(AudioChunk(data, RATE_HZ, sample))
                sample += len(data) // SAMPLE_BYTES
        return sample


def build(settings: SpeechUrlSettings, wake: Wake) -> SpeechUrlRunner:
    """Check the settings; the server is not asked before there is a clause."""
    upstream = Upstream(
        settings.base_url,
        read_api_key(settings.api_key_file),
        settings.connect_timeout_s,
        settings.silence_timeout_s,
    )
    upstream.check()
    return SpeechUrlRunner(settings, upstream, wake)


OPENAI_SPEECH = RunnerType(SpeechUrlSettings, build, wakes_itself=True)
