"""A talker and a codec of a few lines of arithmetic, with all that makes real ones hard to chunk.

The talker says each character as a frame. The codec smears each frame over the next one, has a
memory of all before, and begins a few samples late, as code2wav does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duologue.core.errors import EngineError
from duologue.engines.answer_payloads import BeginAnswer
from duologue.engines.payloads import SpeakText
from duologue.engines.runners.speech.contract import Codes, Samples

BOOKS = 2
FRAME_SAMPLES = 8
LATE_SAMPLES = 3
RATE_HZ = 24_000


def codes_of(text: str) -> Codes:
    """All frames of a text."""
    codes = [[ord(each), index] for index, each in enumerate(text)]
    return np.array(codes, np.uint16).reshape(-1, BOOKS)


def whole(codes: Codes) -> Samples:
    """Sound an utterance at once."""
    memory = 0.0
    previous = np.zeros(BOOKS)
    samples: list[float] = []
    for frame in codes.astype(float):
        for at in range(FRAME_SAMPLES):
            memory = 0.9 * memory + 0.0005 * (frame[0] - previous[0]) + 0.0001 * frame[1]
            samples.append(memory + 0.001 * at)
        previous = frame
    return np.array(samples[LATE_SAMPLES:], np.float32)


@dataclass(eq=False)
class Spelling:
    codes: Codes
    said: int = 0
    has_all: bool = True


class FakeTalker:
    """Refuses what contains a bad word, and never ends with "forever".

    The words of an answer are numbers of characters; behind a "." nothing of it is said.
    """

    books = BOOKS

    def __init__(self, slots: int = 4) -> None:
        self.slots = slots
        self.open: list[Spelling] = []
        self.batches: list[int] = []

    def begin(self, clause: SpeakText) -> Spelling:
        if "bad" in clause.text:
            raise EngineError("it does not say that", code="not_said")
        spelling = Spelling(codes_of(clause.text * (99 if clause.text == "forever" else 1)))
        self.open.append(spelling)
        return spelling

    def begin_answer(self, asked: BeginAnswer, words: Sequence[int], *, last: bool) -> Spelling:
        if asked.voice == "bad":
            raise EngineError("there is no such voice")
        spelling = Spelling(codes_of(""), has_all=False)
        self.open.append(spelling)
        self.add_words(spelling, words, last=last)
        return spelling

    def add_words(self, utterance: Spelling, words: Sequence[int], *, last: bool) -> None:
        assert not utterance.has_all
        text = "".join(chr(each) for each in (*utterance.codes[:, 0].tolist(), *words))
        utterance.codes = codes_of(text)
        utterance.has_all = last

    def waits(self, utterance: Spelling) -> bool:
        return not utterance.has_all and utterance.said >= len(utterance.codes)

    def next_frames(self, utterances: Sequence[Spelling]) -> Sequence[Codes | None]:
        self.batches.append(len(utterances))
        return [self._next(each) for each in utterances]

    def end(self, utterance: Spelling) -> None:
        self.open.remove(utterance)

    def _next(self, spelling: Spelling) -> Codes | None:
        at, spelling.said = spelling.said, spelling.said + 1
        if at and spelling.codes[at - 1, 0] == ord("."):
            return None
        return spelling.codes[at : at + 1] if at < len(spelling.codes) else None


@dataclass(eq=False)
class Heard:
    codes: Codes
    given: int = 0


class FakeCodec:
    """Remembers what it had: enough to be right, and to see what was not freed."""

    rate_hz = RATE_HZ
    books = BOOKS

    def __init__(self, slots: int = 4) -> None:
        self.slots = slots
        self.open: list[Heard] = []
        self.chunks: list[list[int]] = []

    def begin(self) -> Heard:
        self.open.append(Heard(np.zeros((0, BOOKS), np.uint16)))
        return self.open[-1]

    def decode(self, streams: Sequence[Heard], codes: Sequence[Codes]) -> Sequence[Samples]:
        self.chunks.append([len(each) for each in codes])
        return [self._decode(*each) for each in zip(streams, codes, strict=True)]

    def length(self, frames: int) -> int:
        return max(0, frames * FRAME_SAMPLES - LATE_SAMPLES)

    def end(self, stream: Heard) -> None:
        self.open.remove(stream)

    def _decode(self, stream: Heard, codes: Codes) -> Samples:
        stream.codes = np.concatenate([stream.codes, codes])
        samples = whole(stream.codes)[stream.given :]
        stream.given += len(samples)
        return samples
