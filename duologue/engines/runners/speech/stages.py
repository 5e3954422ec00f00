"""A talker and a codec as runners: each a stage of its own, or both fused in one.

Fused, the first frame is sounded in the very step that drew it. In two stages the talker may do so,
too: what it has sounded goes to the caller past the codec, which moves on without repeating it.
This module must not know models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from duologue.core.errors import EngineError
from duologue.engines.payloads import CodeFrames, Payload, SpeakText
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.speech.contract import Codec, Talker
from duologue.engines.runners.speech.sounding import ChunkSizes, Sounding, sound
from duologue.engines.runners.speech.talking import TalkerJobs, Talking

_WARM_UP = SpeakText("Hello.", 0)
_WARM_FRAMES = 2
_ONE_FRAME = ChunkSizes(first=1, usual=1)


def _warm_talker(talker: Talker) -> None:
    utterance = talker.begin(_WARM_UP)
    for _ in range(_WARM_FRAMES):
        talker.next_frames([utterance])
    talker.end(utterance)


def _warm_codec(codec: Codec, sizes: ChunkSizes) -> None:
    stream = codec.begin()
    for count in (sizes.first, sizes.usual):
        codec.decode([stream], [np.zeros((count, codec.books), np.uint16)])
    codec.end(stream)


@dataclass(slots=True)
class _AtTalker:
    """A job of a talker; ``is_silent``: nothing of it was sounded ahead."""

    talking: Talking
    is_silent: bool = True


class TalkerRunner:
    """Text in, codes out.

    Args:
        ahead: Sounds the first frame of each job here; ``None``: all is left to the codec's stage.
            Its edge must be ``sounded_ahead``.
    """

    def __init__(self, talker: Talker, max_frames: int, ahead: Codec | None = None) -> None:
        self.max_batch = talker.slots
        self._jobs = TalkerJobs(talker, max_frames)
        self._ahead = ahead

    def warm_up(self) -> None:
        """Say something."""
        _warm_talker(self._jobs.talker)
        if self._ahead is not None:
            _warm_codec(self._ahead, _ONE_FRAME)

    def open(self, job: Job) -> None:
        """Begin in silence."""
        job.state = _AtTalker(self._jobs.open(job))

    def ready(self, job: Job) -> bool:
        """There is something to say."""
        return cast(_AtTalker, job.state).talking.is_due

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Make the next frame of each."""
        states = [cast(_AtTalker, job.state) for job in jobs]
        made = self._jobs.advance([state.talking for state in states])
        return [
            Step(error=each) if isinstance(each, EngineError) else Step(self._given(state, each))
            for state, each in zip(states, made, strict=True)
        ]

    def close(self, job: Job) -> None:
        """Free the talker's slot."""
        self._jobs.close(cast(_AtTalker, job.state).talking)
        job.state = None

    def _given(self, state: _AtTalker, frames: CodeFrames) -> Sequence[Payload]:
        if not frames.count and frames.text_end < 0:
            return ()
        # Only at the beginning of a job: later the codec's stage may still be at an earlier clause.
        is_first, state.is_silent = state.is_silent, False
        if self._ahead is None or not is_first or not frames.count:
            return (frames,)
        sounding = Sounding(self._ahead, _ONE_FRAME)
        sounding.put(frames)
        (outputs,) = sound(self._ahead, [sounding])
        sounding.close()
        return (*outputs, CodeFrames(frames.codes, frames.books, heard=True))


class CodecRunner:
    """Codes in, speech out."""

    def __init__(self, codec: Codec, sizes: ChunkSizes) -> None:
        self.max_batch = codec.slots
        self._codec = codec
        self._sizes = sizes
        self._open = 0

    def warm_up(self) -> None:
        """Sound something."""
        _warm_codec(self._codec, self._sizes)

    def open(self, job: Job) -> None:
        """Begin in silence.

        Raises:
            EngineError: The codec has no room for it.
        """
        if self._open >= self._codec.slots:
            raise EngineError(
                f"all {self._codec.slots} slots of the codec are taken: max_jobs of its stage "
                "must not be more than its slots"
            )
        self._open += 1
        job.state = Sounding(self._codec, self._sizes)

    def ready(self, job: Job) -> bool:
        """Frames have come, or a chunk is to be sounded."""
        return bool(job.inputs) or cast(Sounding, job.state).is_due

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Sound the next chunk of each that has one."""
        steps = [self._taken(job) for job in jobs]
        due = [
            at
            for at, job in enumerate(jobs)
            if steps[at].error is None and cast(Sounding, job.state).is_due
        ]
        made = sound(self._codec, [cast(Sounding, jobs[at].state) for at in due])
        for at, outputs in zip(due, made, strict=True):
            steps[at] = Step(outputs)
        return steps

    def close(self, job: Job) -> None:
        """Free the codec's slot."""
        self._open -= 1
        cast(Sounding, job.state).close()
        job.state = None

    def _taken(self, job: Job) -> Step:
        """Take frames until a chunk is due; those that it does not need go on waiting."""
        sounding = cast(Sounding, job.state)
        while job.inputs and not sounding.is_due:
            frames = job.inputs.popleft()
            if not isinstance(frames, CodeFrames):
                kind = type(frames).__name__
                return Step(
                    error=EngineError(
                        f"a codec reads CodeFrames, not {kind}; the edge of a talker with "
                        "first_audio must be sounded_ahead"
                    )
                )
            sounding.put(frames)
        return Step()


@dataclass(slots=True)
class _Fused:
    """A job of both."""

    talking: Talking
    sounding: Sounding


class FusedRunner:
    """Text in, speech out, without a hop in between."""

    def __init__(self, talker: Talker, codec: Codec, max_frames: int, sizes: ChunkSizes) -> None:
        self.max_batch = min(talker.slots, codec.slots)
        self._jobs = TalkerJobs(talker, max_frames)
        self._codec = codec
        self._sizes = sizes

    def warm_up(self) -> None:
        """Say something."""
        _warm_talker(self._jobs.talker)
        _warm_codec(self._codec, self._sizes)

    def open(self, job: Job) -> None:
        """Begin in silence."""
        job.state = _Fused(self._jobs.open(job), Sounding(self._codec, self._sizes))

    def ready(self, job: Job) -> bool:
        """There is something to say, or to be sounded."""
        state = cast(_Fused, job.state)
        return state.talking.is_due or state.sounding.is_due

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Make the next frame of each, and sound the chunks that are complete with it."""
        states = [cast(_Fused, job.state) for job in jobs]
        errors = dict(self._talk([each for each in states if not each.sounding.is_due]))
        sounding = [each for each in states if each.sounding.is_due and id(each) not in errors]
        made = sound(self._codec, [each.sounding for each in sounding])
        outputs = {id(each): payloads for each, payloads in zip(sounding, made, strict=True)}
        return [Step(outputs.get(id(each), ()), error=errors.get(id(each))) for each in states]

    def close(self, job: Job) -> None:
        """Free the slots of both."""
        state = cast(_Fused, job.state)
        self._jobs.close(state.talking)
        state.sounding.close()
        job.state = None

    def _talk(self, states: Sequence[_Fused]) -> Iterator[tuple[int, EngineError]]:
        """Hand frames over; yields those that failed."""
        made = self._jobs.advance([each.talking for each in states]) if states else ()
        for state, frames in zip(states, made, strict=True):
            if isinstance(frames, EngineError):
                yield id(state), frames
            elif frames.count or frames.text_end >= 0:
                state.sounding.put(frames)
