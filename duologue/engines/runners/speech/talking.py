"""The text of jobs on its way through a talker: clauses in, one frame of codes a step out.

This module must not know what becomes of the codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from duologue.core.errors import EngineError
from duologue.engines.payloads import CodeFrames, SpeakText
from duologue.engines.runners.contract import Job
from duologue.engines.runners.speech.contract import Talker

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Talking:
    """How far a job has come.

    Args:
        clause: What is being said; ``None``: nothing is.
        utterance: Of the talker, while something is said.
        frames: Made of this clause so far.
    """

    job: Job
    clause: SpeakText | None = None
    utterance: Any = None
    frames: int = 0

    @property
    def is_due(self) -> bool:
        """There is something to say."""
        return self.clause is not None or bool(self.job.inputs)


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
        """Make the next frame of each, or say that a clause is over; each must be due."""
        results: list[CodeFrames | EngineError | None] = [self._begun(each) for each in talks]
        speaking = [each for each in talks if each.utterance is not None]
        if speaking:
            frames = iter(self.talker.next_frames([each.utterance for each in speaking]))
            for at, each in enumerate(talks):
                if each.utterance is not None:
                    results[at] = self._said(each, next(frames))
        assert all(each is not None for each in results)
        return [each for each in results if each is not None]

    def _begun(self, talking: Talking) -> CodeFrames | EngineError | None:
        """Begin the next clause where none is said; returns what comes of it without a frame."""
        if talking.clause is not None:
            return None
        clause = talking.job.inputs.popleft()
        if not isinstance(clause, SpeakText):
            return EngineError(f"a talker reads SpeakText, not {type(clause).__name__}")
        if not clause.text.strip():
            return self._over(clause)
        try:
            talking.utterance = self.talker.begin(clause)
        except EngineError as exc:
            return exc
        talking.clause = clause
        talking.frames = 0
        return None

    def _said(self, talking: Talking, frame: Any) -> CodeFrames:
        assert talking.clause is not None
        if frame is None or talking.frames >= self._max_frames:
            if frame is not None:
                log.warning("utterance_cut", frames=talking.frames)
            over = self._over(talking.clause)
            self._end(talking)
            return over
        talking.frames += 1
        return CodeFrames(frame.astype("<u2").tobytes(), self.talker.books)

    def _over(self, clause: SpeakText) -> CodeFrames:
        return CodeFrames(b"", self.talker.books, text_end=clause.text_end)

    def _end(self, talking: Talking) -> None:
        if talking.utterance is not None:
            self.talker.end(talking.utterance)
        talking.utterance = talking.clause = None
