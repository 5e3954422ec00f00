"""A talker of two transformers, for many utterances in one batch, each at its own place.

This module must not know how text becomes a prompt.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from duologue.core.errors import EngineError
from duologue.engines.answer_payloads import BeginAnswer
from duologue.engines.models.code_talker.predictor import CodePredictor
from duologue.engines.models.code_talker.sampling import Draw, Taste
from duologue.engines.models.decoder.stack import DecoderStack, standing
from duologue.engines.payloads import SpeakText

_SEED_BITS = 62

Frame: TypeAlias = NDArray[np.uint16]
"""[1, books]"""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an utterance begins with.

    Shapes:
        inputs: [T, D]
        text: [N, D], added to the first N frames that are read back: text that is still to be said
        pad: [D], added to all others; None: nothing is
        stands: [3, T], time, row and column of each input; None: they follow one another

    Args:
        shift: How much later in order the first frame comes than it stands, less than 0.
    """

    inputs: Tensor
    text: Tensor | None = None
    pad: Tensor | None = None
    stands: Tensor | None = None
    shift: int = 0


class AnswerLanguage(Protocol):
    """How an answer is read that comes word by word."""

    def answer(self, asked: BeginAnswer, first: int) -> Prompt:
        """Return what to begin with, the first word included; ``text`` holds no others.

        Raises:
            EngineError: It cannot be said.
        """
        ...

    def words(self, ids: Sequence[int], *, last: bool) -> Tensor:
        """Return words as they are added to frames, [N, D]; with ``last`` their end too."""
        ...


class Language(Protocol):
    """What one family does with text and codes."""

    def prompt(self, clause: SpeakText) -> Prompt:
        """Return what to begin with; raises ``EngineError`` if it cannot be said."""
        ...

    def scores(self, hidden: Tensor, said: Tensor, frames: Tensor) -> Tensor:
        """Return how likely each first code is.

        Shapes:
            hidden: [R, D]
            said: [R, V] bool, first codes that occurred in the utterance
            frames: [R] int32, how many it has so far
            returns: [R, V]
        """
        ...

    def embed(self, codes: Tensor) -> Tensor:
        """Return a frame as the large transformer reads it: [R, K] int64 -> [R, D]."""
        ...

    def is_end(self, codes: Sequence[int]) -> bool:
        """Tell whether a frame means that all was said."""
        ...


@dataclass(eq=False, slots=True)
class Utterance:
    """All that the next frame depends on.

    Args:
        slot: Where its keys and values lie.
        hidden: What the next frame is drawn from, [D]; ``None``: ``pending`` must be read first.
        pending: The last frame as it is read back, [D].
        position: Of the next input.
        has_all: No further text comes; else no frame is drawn whose text is not there yet.
    """

    slot: int
    prompt: Prompt
    seed: int
    position: int
    hidden: Tensor | None = None
    pending: Tensor | None = None
    frames: int = field(default=0)
    has_all: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How frames are drawn.

    Args:
        seed: Together with the text this decides all draws; 0: they are never the same.
    """

    first: Taste
    others: Taste
    seed: int = 0


class CodeTalker:
    """Implements ``Talker``.

    Args:
        vocabulary: How many first codes there are.
        books: Codes of a frame.
        answers: How answers are read; ``None``: only clauses are said.
    """

    def __init__(
        self,
        stack: DecoderStack,
        predictor: CodePredictor,
        language: Language,
        manner: Manner,
        *,
        slots: int,
        vocabulary: int,
        books: int,
        device: torch.device,
        answers: AnswerLanguage | None = None,
    ) -> None:
        self._answers = answers
        self.books = books
        self.slots = slots
        self._stack = stack
        self._predictor = predictor
        self._language = language
        self._manner = manner
        self._device = device
        self._free = list(range(slots))
        self._said = torch.zeros((slots, vocabulary), dtype=torch.bool, device=device)

    def begin(self, clause: SpeakText) -> Utterance:
        """Read a text.

        Raises:
            EngineError: It is too long, or its voice is not known.
        """
        with torch.inference_mode():
            return self._begun(self._language.prompt(clause), clause.text)

    def begin_answer(self, asked: BeginAnswer, words: Sequence[int], *, last: bool) -> Utterance:
        """Begin to say an answer.

        Raises:
            EngineError: What it answers is too long, its voice is not known, or this talker only
                says clauses.
        """
        if self._answers is None:
            raise EngineError("this talker says clauses, and no answers that come word by word")
        with torch.inference_mode():
            utterance = self._begun(self._answers.answer(asked, words[0]), str(asked.asked))
        utterance.has_all = False
        self.add_words(utterance, words[1:], last=last)
        return utterance

    def add_words(self, utterance: Utterance, words: Sequence[int], *, last: bool) -> None:
        """Let an answer go on."""
        assert self._answers is not None
        prompt = utterance.prompt
        with torch.inference_mode():
            more = self._answers.words(words, last=last)
            text = more if prompt.text is None else torch.cat((prompt.text, more))
        utterance.prompt = replace(prompt, text=text)
        utterance.has_all = last

    def waits(self, utterance: Utterance) -> bool:
        """Tell whether the next frame needs words that have not come."""
        text = utterance.prompt.text
        return not utterance.has_all and utterance.frames >= (0 if text is None else len(text))

    def next_frames(self, utterances: Sequence[Utterance]) -> Sequence[Frame | None]:
        """Make the next frame of each utterance."""
        results: list[Frame | None] = [None] * len(utterances)
        places = [at for at, each in enumerate(utterances) if self._has_room(each)]
        if places:
            with torch.inference_mode():
                drawn = self._drawn([utterances[at] for at in places])
            for at, frame in zip(places, drawn, strict=True):
                results[at] = frame
        return results

    def end(self, utterance: Utterance) -> None:
        """Free the slot."""
        self._free.append(utterance.slot)

    def _begun(self, prompt: Prompt, seed: str) -> Utterance:
        length = len(prompt.inputs)
        if length >= self._stack.length:
            raise EngineError(
                f"a clause makes {length} inputs, and there is room for {self._stack.length} with "
                "its speech; the setting positions is too small, or the clause too long"
            )
        slot = self._free.pop()
        self._stack.forget(slot)
        self._said[slot] = False
        utterance = Utterance(slot, prompt, self._seed(seed), position=length)
        stands = None if prompt.stands is None else prompt.stands[None]
        made = self._stack.step(prompt.inputs[None], [slot], [0], stands=stands)
        utterance.hidden = made[0, -1]
        return utterance

    def _drawn(self, rows: Sequence[Utterance]) -> Sequence[Frame | None]:
        self._read_back([each for each in rows if each.hidden is None])
        hidden = torch.stack([each.hidden for each in rows if each.hidden is not None])
        draw = Draw.of([each.seed for each in rows], [each.frames for each in rows], self._device)
        slots = torch.tensor([each.slot for each in rows], device=self._device)
        scores = self._language.scores(hidden, self._said[slots], draw.counters)
        first = draw.take(scores, self._manner.first, 0)
        self._said[slots, first] = True
        codes = self._predictor.draw(hidden, first, draw, self._manner.others)
        embedded = self._language.embed(codes)
        # The one wait for the device in a frame.
        return [
            self._frame(each, frame, pending)
            for each, frame, pending in zip(rows, codes.tolist(), embedded, strict=True)
        ]

    def _frame(self, utterance: Utterance, codes: list[int], embedded: Tensor) -> Frame | None:
        if self._language.is_end(codes):
            return None
        utterance.pending = self._with_text(embedded, utterance)
        utterance.hidden = None
        utterance.frames += 1
        return np.array([codes], np.uint16)

    def _has_room(self, utterance: Utterance) -> bool:
        return utterance.hidden is not None or utterance.position < self._stack.length

    def _read_back(self, utterances: Sequence[Utterance]) -> None:
        """Let the large transformer read the frames that were drawn last."""
        if not utterances:
            return
        given = torch.stack([each.pending for each in utterances if each.pending is not None])
        slots = [each.slot for each in utterances]
        starts = [each.position for each in utterances]
        shifts = [each.prompt.shift for each in utterances]
        stands = standing(starts, shifts, 1, given.device)
        made = self._stack.step(given[:, None], slots, starts, stands=stands)
        for each, hidden in zip(utterances, made[:, -1], strict=True):
            each.hidden = hidden
            each.position += 1

    @staticmethod
    def _with_text(embedded: Tensor, utterance: Utterance) -> Tensor:
        prompt = utterance.prompt
        if prompt.text is not None and utterance.frames < len(prompt.text):
            return embedded + prompt.text[utterance.frames]
        return embedded if prompt.pad is None else embedded + prompt.pad

    def _seed(self, text: str) -> int:
        if not self._manner.seed:
            return secrets.randbits(_SEED_BITS)
        digest = hashlib.blake2b(f"{self._manner.seed} {text}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) >> (64 - _SEED_BITS)
