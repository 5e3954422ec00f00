"""A voice that counts: each sample says where in its answer it is, and whose answer that is.

A sample that is lost, doubled, late or somebody else's is seen by whoever reads the answer.
Imported by worker processes; must not know the callers.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from duologue.core.audio import ms_to_samples
from duologue.engines.payloads import AudioChunk, Payload, SpeakText, SpeechMark
from duologue.engines.runners.contract import Job
from duologue.engines.runners.registry import RunnerType
from tests.faults.scripted_models import FaultyRunner, FaultySettings, Work

RATE_HZ = 24_000
MS_PER_CHARACTER = 10
CHUNK_PAIRS = RATE_HZ // 40
WRAP = 30_000
"""Positions are counted in pairs of samples, modulo this."""

_SAID = re.compile(r"you said (.+?)(?: and so on|\.)")


def tag_of(phrase: str) -> int:
    """The number that stands for what somebody said, from 1 on."""
    return zlib.crc32(phrase.encode()) % WRAP + 1


@dataclass(slots=True)
class _Counting(Work):
    """How far an answer has come.

    Args:
        pairs: Of samples so far.
        text: What was spoken so far.
    """

    pairs: int = 0
    text: str = ""


class CountingVoice(FaultyRunner):
    """Every second sample is the position, the others are the phrase that is repeated.

    Until the phrase is complete they are 0.
    """

    def open(self, job: Job) -> None:
        job.state = _Counting()

    def _answers(self, work: Work, payload: Payload) -> tuple[str, list[tuple[Payload, ...]]]:
        assert isinstance(payload, SpeakText)
        return payload.text, list(self._chunks(cast(_Counting, work), payload))

    def _chunks(self, work: _Counting, payload: SpeakText) -> Iterator[tuple[Payload, ...]]:
        work.text = f"{work.text} {payload.text}"
        said = _SAID.search(" ".join(work.text.split()))
        tag = 0 if said is None else tag_of(said[1])
        end = work.pairs + ms_to_samples(len(payload.text) * MS_PER_CHARACTER, RATE_HZ) // 2
        while work.pairs < end:
            first, work.pairs = work.pairs, min(end, work.pairs + CHUNK_PAIRS)
            pairs = ((at % WRAP, tag) for at in range(first, work.pairs))
            samples = array("h", (each for pair in pairs for each in pair))
            yield (AudioChunk(samples.tobytes(), RATE_HZ, 2 * first),)
        yield (SpeechMark(payload.text_end, 2 * end),)


class Count:
    """Reads one answer: what comes must go on where it was, and be its caller's.

    Args:
        phrases: What the caller may have said.
    """

    def __init__(self, *phrases: str) -> None:
        self.pairs = 0
        self._tags = {0, *map(tag_of, phrases)}
        self._rest = b""

    @property
    def seconds(self) -> float:
        """How much was read."""
        return 2 * self.pairs / RATE_HZ

    def read(self, pcm: bytes) -> None:
        """Check some sound.

        Raises:
            AssertionError: Something is missing, doubled, or of another answer.
        """
        data = self._rest + pcm
        whole = len(data) // 4 * 4
        self._rest = data[whole:]
        samples = array("h", data[:whole])
        expected = array("h", ((self.pairs + n) % WRAP for n in range(whole // 4)))
        assert samples[::2] == expected, (
            f"samples {samples[0]} to {samples[-2]} where {self.pairs % WRAP} was to come"
        )
        strange = set(samples[1::2]) - self._tags
        assert not strange, f"samples of another answer: {strange}, not {self._tags}"
        self.pairs += len(expected)


VOICE = RunnerType(FaultySettings, lambda settings, _: CountingVoice(settings), wakes_itself=True)
