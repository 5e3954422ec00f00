"""What happened in a call: facts for the checks, the table and the picture.

Collected while the call goes on, from its events and from every frame that was said or played.
This module must not judge anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from duologue.clients.machine import EventOrUnknown
from duologue.clients.playback import RATE_HZ, Taken
from duologue.clients.timing import TurnTiming
from duologue.commands.demo.questions import Question
from duologue.core.audio import SAMPLE_BYTES, samples_to_ms
from duologue.protocol.events import ItemTruncated, SpeechStarted
from duologue.protocol.response_events import (
    AudioDelta,
    AudioTranscriptDone,
    OutputItemAdded,
    ResponseCreated,
    ResponseDone,
)

EARLY_S = 0.5
"""A turn begins before its speech: the server adds what it kept from before it was certain."""


@dataclass(slots=True)
class AnswerRecord:
    """One answer as it came over the wire.

    Args:
        transcript: All that was sent of its words.
        arrived: Its speech as it arrived; ``played_samples`` of it were played.
        audio_after_interruption: Deltas that came after the event that interrupted it.
        audio_after_end: Deltas that came after its ``response.done``.
        truncated_ms: Where the server says that it was cut, one for each of its words on it.
        history: The words that the server keeps of it.
        transcribed: What a recogniser made of what was played.
    """

    response_id: str
    item_id: str = ""
    status: str = ""
    reason: str = ""
    transcript: str = ""
    arrived: bytes = b""
    interrupted: bool = False
    audio_after_interruption: int = 0
    audio_after_end: int = 0
    truncated_ms: list[int] = field(default_factory=list)
    history: str = ""
    transcribed: str = ""


@dataclass(slots=True)
class TurnRecord:
    """One question and its answer, on the time of the recording.

    Units:
        Seconds since the first frame of the recording.

    Args:
        asked_at: When its clip began.
        transcript: What the server understood.
        timing: The moments, on the caller's clock; see ``CallRecord.time_of``.
    """

    question: Question
    asked_at: float
    transcript: str = ""
    timing: TurnTiming | None = None
    answer: AnswerRecord | None = None

    @property
    def speech_from(self) -> float:
        """When the speech of the question began."""
        return self.asked_at + self.question.speech_from_s

    @property
    def speech_until(self) -> float:
        """When the speech of the question ended: from here on the caller waits."""
        return self.asked_at + self.question.speech_until_s


@dataclass(frozen=True, slots=True)
class PlayedRun:
    """A run of samples of one item in the recording."""

    item_id: str
    start_sample: int
    samples: int


@dataclass(slots=True)
class CallRecord:
    """One call. Both lanes are s16le mono at 24 kHz and begin at the same moment.

    Args:
        started_at: That moment on the caller's clock.
        gap_s: Silence in the middle of answers.
        model: The name that the server gave.
    """

    started_at: float = 0.0
    said: bytearray = field(default_factory=bytearray)
    played: bytearray = field(default_factory=bytearray)
    runs: list[PlayedRun] = field(default_factory=list)
    turns: list[TurnRecord] = field(default_factory=list)
    answers: dict[str, AnswerRecord] = field(default_factory=dict)
    gap_s: float = 0.0
    model: str = ""

    @property
    def length_s(self) -> float:
        """How long the call was."""
        return len(self.said) / SAMPLE_BYTES / RATE_HZ

    def time_of(self, moment: float | None) -> float | None:
        """Return a moment of the caller's clock on the time of the recording."""
        return None if moment is None else moment - self.started_at

    def failure(self) -> str:
        """Why the latest answer failed; empty where it did not."""
        answer = next(reversed(self.answers.values()), None)
        return answer.reason if answer is not None and answer.status == "failed" else ""

    def played_of(self, item_id: str) -> bytes:
        """Return exactly what was played of an item."""
        return b"".join(
            bytes(self.played[run.start_sample * SAMPLE_BYTES :][: run.samples * SAMPLE_BYTES])
            for run in self.runs
            if run.item_id == item_id
        )

    def played_samples(self, item_id: str) -> int:
        """How much of an item was played."""
        return sum(run.samples for run in self.runs if run.item_id == item_id)

    def played_ms(self, item_id: str) -> int:
        """The same in whole milliseconds."""
        return samples_to_ms(self.played_samples(item_id), RATE_HZ)

    def span_of(self, item_id: str) -> tuple[float, float] | None:
        """From when to when an item was played, in seconds of the recording."""
        own = [run for run in self.runs if run.item_id == item_id]
        if not own:
            return None
        return own[0].start_sample / RATE_HZ, (own[-1].start_sample + own[-1].samples) / RATE_HZ


class CallRecorder:
    """Writes a ``CallRecord``.

    Args:
        frame_samples: Length of a frame. What is played begins when what was said has ended, so
            the lane of the loudspeaker starts one frame late.
    """

    def __init__(self, frame_samples: int) -> None:
        self.record = CallRecord()
        self.record.played.extend(bytes(frame_samples * SAMPLE_BYTES))
        self._by_item: dict[str, AnswerRecord] = {}
        self._ended: set[str] = set()

    def on_frame(self, said: bytes, played: Taken) -> None:
        """Keep a frame of both directions."""
        record = self.record
        record.said.extend(said)
        start = len(record.played) // SAMPLE_BYTES
        record.played.extend(played.pcm)
        for item_id, samples in played.runs:
            if item_id is not None:
                record.runs.append(PlayedRun(item_id, start, samples))
            start += samples

    def on_event(self, event: EventOrUnknown) -> None:
        """Keep what an event says about an answer."""
        match event:
            case ResponseCreated(response=response):
                self.record.answers[response.id] = AnswerRecord(response.id)
            case OutputItemAdded(response_id=response_id, item=item):
                answer = self._answer(response_id)
                answer.item_id = item.id
                self._by_item[item.id] = answer
            case AudioDelta(response_id=response_id, delta=pcm):
                answer = self._answer(response_id)
                answer.arrived += pcm
                answer.audio_after_interruption += answer.interrupted
                answer.audio_after_end += response_id in self._ended
            case AudioTranscriptDone(response_id=response_id, transcript=text):
                self._answer(response_id).transcript = text
            case ResponseDone(response=response):
                answer = self._answer(response.id)
                answer.status = response.status
                details = response.status_details
                answer.reason = (details.reason if details is not None else None) or ""
                self._ended.add(response.id)
            case SpeechStarted():
                for answer in self.record.answers.values():
                    answer.interrupted = True
            case ItemTruncated(item_id=item_id, audio_end_ms=end_ms):
                if item_id in self._by_item:
                    self._by_item[item_id].truncated_ms.append(end_ms)
            case _:
                pass

    def _answer(self, response_id: str) -> AnswerRecord:
        return self.record.answers.setdefault(response_id, AnswerRecord(response_id))


def match_turns(
    turns: Sequence[TurnRecord], timings: Sequence[TurnTiming], record: CallRecord
) -> None:
    """Give each question the moments and the answer of the caller's turn that it became.

    A question that the server took for two turns has the last of them, which is the one that was
    answered.
    """
    for number, turn in enumerate(turns):
        following = turns[number + 1].asked_at if number + 1 < len(turns) else float("inf")
        for timing in timings:
            began = record.time_of(timing.speech_from)
            if began is None or not turn.asked_at <= began + EARLY_S < following:
                continue
            if turn.timing is None or timing.response_id is not None:
                turn.timing = timing
                turn.answer = record.answers.get(timing.response_id or "")
