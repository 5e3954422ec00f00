"""The codes of a job on their way through a codec: frames in, speech and marks out.

Frames are gathered into chunks, the first of which is short. A chunk never spans two clauses,
since each is an utterance of its own for the codec. This module must not know who makes codes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from duologue.codecs.pcm import float_to_pcm
from duologue.engines.payloads import AudioChunk, CodeFrames, Payload, SpeechMark
from duologue.engines.runners.speech.contract import Codec, Codes, Samples


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """How many frames are sounded at a time.

    Args:
        first: Of a job's first chunk: what it waits for until something is heard.
        usual: Of all others; fewer at the end of a clause.
    """

    first: int = 1
    usual: int = 6


@dataclass(slots=True)
class _Clause:
    """Frames of one clause that were not sounded yet.

    Args:
        heard: So many of them, the first ones, were sounded by somebody else.
        text_end: -1: more frames may come.
    """

    frames: deque[Codes] = field(default_factory=deque)
    heard: int = 0
    text_end: int = -1


class Sounding:
    """How far a job has come. ``close`` it in the end."""

    def __init__(self, codec: Codec, sizes: ChunkSizes) -> None:
        self._codec = codec
        self._sizes = sizes
        self._clauses: deque[_Clause] = deque()
        self.stream: Any = None
        """Of the codec, while a clause is sounded."""
        self._sounded = 0
        """Frames of the clause that the stream has had."""
        self._heard = 0
        """Of the chunk that is being sounded."""
        self._sample = 0
        self._wanted = sizes.first

    @property
    def is_due(self) -> bool:
        """A chunk can be sounded, or a clause is over."""
        if not self._clauses:
            return False
        clause = self._clauses[0]
        return clause.text_end >= 0 or len(clause.frames) - clause.heard >= self._wanted

    def put(self, given: CodeFrames) -> None:
        """Add frames."""
        if not self._clauses or self._clauses[-1].text_end >= 0:
            self._clauses.append(_Clause())
        clause = self._clauses[-1]
        clause.frames.extend(np.frombuffer(given.codes, "<u2").reshape(-1, 1, given.books))
        clause.text_end = given.text_end
        if given.heard:
            clause.heard += given.count
            self._wanted = self._sizes.usual

    def take(self) -> Codes | None:
        """Return the next chunk; ``None`` where only the end of a clause is to be told.

        Shapes:
            returns: [frames, books], for ``stream``
        """
        clause = self._clauses[0]
        count = min(len(clause.frames), clause.heard + self._wanted)
        if not count:
            return None
        if self.stream is None:
            self.stream = self._codec.begin()
        self._heard, clause.heard = clause.heard, 0
        self._wanted = self._sizes.usual
        return np.concatenate([clause.frames.popleft() for _ in range(count)])

    def give(self, codes: Codes | None, samples: Samples | None) -> Sequence[Payload]:
        """Return what comes of the chunk that was taken.

        Args:
            samples: What the codec made of it.
        """
        outputs: list[Payload] = []
        if codes is not None and samples is not None:
            before = self._codec.length(self._sounded)
            known = self._codec.length(self._sounded + self._heard) - before
            self._sounded += len(codes)
            self._sample += known
            if len(samples) > known:
                pcm = float_to_pcm(samples[known:])
                outputs.append(AudioChunk(pcm, self._codec.rate_hz, self._sample))
            self._sample += len(samples) - known
        clause = self._clauses[0]
        if clause.text_end >= 0 and not clause.frames:
            outputs.append(SpeechMark(clause.text_end, self._sample))
            self._clauses.popleft()
            self.close()
        return outputs

    def close(self) -> None:
        """Free the codec's stream."""
        if self.stream is not None:
            self._codec.end(self.stream)
        self.stream = None
        self._sounded = 0


def sound(codec: Codec, soundings: Sequence[Sounding]) -> Sequence[Sequence[Payload]]:
    """Sound the next chunk of each, which must be due, in one call of the codec."""
    chunks = [each.take() for each in soundings]
    taken = [
        (each, codes) for each, codes in zip(soundings, chunks, strict=True) if codes is not None
    ]
    streams = [each.stream for each, _ in taken]
    made = iter(codec.decode(streams, [codes for _, codes in taken]) if taken else ())
    return [
        each.give(codes, None if codes is None else next(made))
        for each, codes in zip(soundings, chunks, strict=True)
    ]
