"""The text of jobs on its way through a talker: clauses in, one frame of codes a step out.

An answer may also come in word by word, while it is being found: the talker waits where it would
run ahead of the words. This module must not know what becomes of the codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from duologue.core.errors import EngineError
from duologue.engines.answer_payloads import AnswerWords, BeginAnswer
from duologue.engines.payloads import CodeFrames, SpeakText
from duologue.engines.runners.contract import Job
from duologue.engines.runners.speech.contract import Talker

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Talking:
    """How far a job has come.

    Args:
        utterance: Of the talker, while something is said.
        frames: Made of it so far.
        text_end: Of the clause that is being said, or of the words of an answer that have come.
        asked: What the answer that is being said answers; ``None``: clauses are said.
        has_all: All words of the answer have come.
        said_all: The talker has found the end of the answer, or it has no words.
        waits: The talker needs more words for its next frame.
    """

    job: Job
    utterance: Any = None
    frames: int = 0
    text_end: int = 0
    asked: BeginAnswer | None = None
    has_all: bool = False
    said_all: bool = False
    waits: bool = False

    @property
    def is_due(self) -> bool:
        """There is something to say, or to be read."""
        return bool(self.job.inputs) or (self.utterance is not None and not self.waits)


class TalkerJobs:
    """Lets a talker say what jobs have been given.

    Args:
        max_frames: Longest utterance: a talker that does not find its end is cut off there.
    """

    def __init__(self, talker: Talker, max_frames: int) -> None:
        self.talker = talker
        self._max_frames = max_frames
        self._open = 0

    def open(self, job: Job) -> Talking:
        """Take a job.

        Raises:
            EngineError: The talker has no room for it.
        """
        if self._open >= self.talker.slots:
            raise EngineError(
                f"all {self.talker.slots} slots of the talker are taken: max_jobs of its stage "
                "must not be more than its slots"
            )
        self._open += 1
        return Talking(job)

    def close(self, talking: Talking) -> None:
        """Let a job go, in the middle of a word or not."""
        self._open -= 1
        self._end(talking)

    def advance(self, talks: Sequence[Talking]) -> Sequence[CodeFrames | EngineError]:
        """Make the next frame of each, or say that a clause is over; each must be due.

        What comes of words that are not enough for a frame has no frames and no end.
        """
        results: list[CodeFrames | EngineError | None] = [self._taken(each) for each in talks]
        places = [at for at, result in enumerate(results) if result is None]
        if places:
            frames = self.talker.next_frames([talks[at].utterance for at in places])
            for at, frame in zip(places, frames, strict=True):
                results[at] = self._said(talks[at], frame)
        return [each for each in results if each is not None]

    def _taken(self, talking: Talking) -> CodeFrames | EngineError | None:
        """Take what has come; returns what comes of it without a frame."""
        try:
            if talking.asked is not None:
                return self._words(talking, talking.asked)
            if talking.utterance is not None:
                return None
            return self._begun(talking)
        except EngineError as exc:
            return exc

    def _begun(self, talking: Talking) -> CodeFrames | None:
        match talking.job.inputs.popleft():
            case SpeakText(text=text, text_end=text_end) as clause:
                talking.text_end = text_end
                if not text.strip():
                    return self._over(talking)
                talking.utterance = self.talker.begin(clause)
                talking.frames = 0
                return None
            case BeginAnswer() as asked:
                talking.asked = asked
                talking.text_end = talking.frames = 0
                talking.has_all = talking.said_all = False
                return self._words(talking, asked)
            case other:
                raise EngineError(f"a talker reads SpeakText, not {type(other).__name__}")

    def _words(self, talking: Talking, asked: BeginAnswer) -> CodeFrames | None:
        """Take the words of an answer that have come."""
        inputs, words, had_all = talking.job.inputs, list[int](), talking.has_all
        while inputs and not talking.has_all:
            given = inputs.popleft()
            if not isinstance(given, AnswerWords):
                kind = type(given).__name__
                raise EngineError(f"an answer consists of AnswerWords, not {kind}")
            words += given.ids
            talking.text_end, talking.has_all = given.text_end, given.last
        if talking.utterance is not None:
            if words or talking.has_all is not had_all:
                self.talker.add_words(talking.utterance, words, last=talking.has_all)
        elif words and not talking.said_all:
            talking.utterance = self.talker.begin_answer(asked, words, last=talking.has_all)
        if talking.utterance is None:
            return self._over(talking) if talking.has_all else self._nothing()
        talking.waits = self.talker.waits(talking.utterance)
        return self._nothing() if talking.waits else None

    def _said(self, talking: Talking, frame: Any) -> CodeFrames:
        if frame is None or talking.frames >= self._max_frames:
            if frame is not None:
                log.warning("utterance_cut", frames=talking.frames)
            self._end(talking)
            if talking.asked is not None and not talking.has_all:
                talking.said_all = True
                return self._nothing()
            return self._over(talking)
        talking.frames += 1
        if talking.asked is not None:
            talking.waits = self.talker.waits(talking.utterance)
        return CodeFrames(frame.astype("<u2").tobytes(), self.talker.books)

    def _over(self, talking: Talking) -> CodeFrames:
        talking.asked = None
        return CodeFrames(b"", self.talker.books, text_end=talking.text_end)

    def _nothing(self) -> CodeFrames:
        return CodeFrames(b"", self.talker.books)

    def _end(self, talking: Talking) -> None:
        if talking.utterance is not None:
            self.talker.end(talking.utterance)
        talking.utterance = None
        talking.waits = False
