from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.core.errors import EngineError
from duologue.engines.answer_payloads import BeginAnswer
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code_talker.predictor import CodePredictor
from duologue.engines.models.code_talker.sampling import Taste
from duologue.engines.models.code_talker.talker import CodeTalker, Manner, Prompt, Utterance
from duologue.engines.models.decoder.stack import DecoderStack
from duologue.engines.payloads import SpeakText
from tests.unit.engines.models.decoder.random_weights import DENSE, write_random

pytestmark = pytest.mark.speech

BOOKS, CODES, SLOTS, LENGTH = 3, 30, 3, 16
TASTE = Taste(temperature=1.0, top_k=CODES)


class Language:
    """Reads letters; ends with a first code of 0."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(2)
        self.letters = torch.randn(256, DENSE.dimension, generator=generator)
        self.tables = torch.randn(BOOKS, CODES, DENSE.dimension, generator=generator)
        self.head = torch.randn(CODES, DENSE.dimension, generator=generator)

    def prompt(self, clause: SpeakText) -> Prompt:
        x = self.letters[list(clause.text.encode())]
        return Prompt(x[:1], x[1:], self.letters[0]) if clause.voice == "streamed" else Prompt(x)

    def answer(self, asked: BeginAnswer, first: int) -> Prompt:
        return Prompt(self.letters[[*asked.asked, first]], None, self.letters[0])

    def words(self, ids: Sequence[int], *, last: bool) -> Tensor:
        return self.letters[[*ids, *([1] if last else ())]]

    def scores(self, hidden: Tensor, said: Tensor, frames: Tensor) -> Tensor:
        return F.linear(hidden, self.head).masked_fill(said, float("-inf"))

    def embed(self, codes: Tensor) -> Tensor:
        parts = [self.tables[place][codes[:, place]] for place in range(BOOKS)]
        return torch.stack(parts).sum(dim=0)

    def is_end(self, codes: Sequence[int]) -> bool:
        return codes[0] == 0


def talker_of(
    folder: Path, *, seed: int = 1, taste: Taste = TASTE, answers: bool = True
) -> CodeTalker:
    language = Language()
    with CheckpointFolder(write_random(folder, DENSE)) as opened:
        short = replace(DENSE, positions=BOOKS)
        predictor = CodePredictor(
            DecoderStack(opened, "m", short, slots=SLOTS, length=BOOKS),
            language.tables.unbind()[:-1],
            language.tables.unbind()[1:],
        )
        stack = DecoderStack(opened, "m", DENSE, slots=SLOTS, length=LENGTH)
    return CodeTalker(
        stack,
        predictor,
        language,
        Manner(first=taste, others=taste, seed=seed),
        slots=SLOTS,
        vocabulary=CODES,
        books=BOOKS,
        device=torch.device("cpu"),
        answers=language if answers else None,
    )


def frames_of(talker: CodeTalker, utterance: Utterance, most: int = 99) -> list[list[int]]:
    frames = []
    while len(frames) < most and (frame := talker.next_frames([utterance])[0]) is not None:
        frames += frame.tolist()
    return frames


@pytest.mark.parametrize("voice", ["whole", "streamed"])
def test_utterances_in_a_batch_are_those_alone(tmp_path: Path, voice: str) -> None:
    talker = talker_of(tmp_path)
    clauses = [SpeakText(text, 1, voice) for text in ("hello", "you", "there is")]
    alone = []
    for clause in clauses:
        utterance = talker.begin(clause)
        alone.append(frames_of(talker, utterance))
        talker.end(utterance)
    together: list[list[list[int]]] = [[], [], []]
    open_ones: list[Utterance] = []
    for step in range(LENGTH + 3):
        if step < len(clauses):  # each begins a step later than the one before
            open_ones.append(talker.begin(clauses[step]))
        for row, frame in enumerate(talker.next_frames(open_ones)):
            if frame is not None:
                together[row].append(frame[0].tolist())
    assert [row[: len(one)] for row, one in zip(together, alone, strict=True)] == alone
    assert len({str(each) for each in alone}) == 3


def test_an_utterance_ends_with_its_end_or_with_the_room(tmp_path: Path) -> None:
    greedy = Taste(temperature=0, top_k=1)
    talker = talker_of(tmp_path, taste=greedy)
    utterance = talker.begin(SpeakText("hello", 1))
    frames = frames_of(talker, utterance)
    assert 0 < len(frames) <= LENGTH - 5 + 1
    assert all(frame[0] != 0 for frame in frames)


def test_the_same_seed_and_text_say_the_same_and_no_seed_does_not(tmp_path: Path) -> None:
    def said(talker: CodeTalker) -> list[list[int]]:
        utterance = talker.begin(SpeakText("a", 1))
        frames = frames_of(talker, utterance)
        talker.end(utterance)
        return frames

    seeded, free = talker_of(tmp_path, seed=3), talker_of(tmp_path, seed=0)
    assert said(seeded) == said(seeded)
    assert len({str(said(free)) for _ in range(5)}) > 1


def test_a_text_without_room_is_refused_and_takes_no_slot(tmp_path: Path) -> None:
    talker = talker_of(tmp_path)
    for _ in range(SLOTS + 1):
        with pytest.raises(EngineError, match="16"):
            talker.begin(SpeakText("x" * LENGTH, 1))
    assert all(talker.begin(SpeakText("a", 1)) for _ in range(SLOTS))


def test_a_slot_that_was_freed_in_the_middle_is_as_new(tmp_path: Path) -> None:
    talker = talker_of(tmp_path)
    utterance = talker.begin(SpeakText("hello", 1))
    expected = frames_of(talker, utterance)
    talker.end(utterance)
    for _ in range(2 * SLOTS):
        cut = talker.begin(SpeakText("something else", 1))
        talker.next_frames([cut])
        talker.end(cut)
    assert frames_of(talker, talker.begin(SpeakText("hello", 1))) == expected


def test_a_frame_has_a_code_of_each_book(tmp_path: Path) -> None:
    talker = talker_of(tmp_path)
    (frame,) = talker.next_frames([talker.begin(SpeakText("hello", 1))])
    assert frame is not None
    assert (frame.shape, frame.dtype) == ((1, BOOKS), np.uint16)


@pytest.mark.parametrize("cuts", [(5,), (1, 5), (1, 2, 3, 4, 5), (3, 5)], ids=str)
def test_an_answer_is_the_same_however_its_words_come(tmp_path: Path, cuts: Sequence[int]) -> None:
    talker = talker_of(tmp_path, seed=3)
    asked, words = BeginAnswer((104, 105)), [65, 66, 67, 68, 69]
    whole = talker.begin_answer(asked, words, last=True)
    assert not talker.waits(whole)
    expected = frames_of(talker, whole)
    talker.end(whole)
    assert len(expected) >= len(words)

    first, *later = cuts
    utterance = talker.begin_answer(asked, words[:first], last=not later)
    frames: list[list[int]] = []
    for start, end in zip(cuts, later, strict=False):
        while not talker.waits(utterance):
            frames += frames_of(talker, utterance, 1)
        assert len(frames) == start - 1, "the first word is in the prompt"
        talker.add_words(utterance, words[start:end], last=end == len(words))
    assert frames + frames_of(talker, utterance) == expected


def test_the_end_may_come_without_a_word(tmp_path: Path) -> None:
    talker = talker_of(tmp_path, seed=3)
    whole = talker.begin_answer(BeginAnswer((104,)), [65, 66], last=True)
    expected = frames_of(talker, whole)
    utterance = talker.begin_answer(BeginAnswer((104,)), [65, 66], last=False)
    frames = frames_of(talker, utterance, 1)
    assert talker.waits(utterance)
    talker.add_words(utterance, [], last=True)
    assert frames + frames_of(talker, utterance) == expected


def test_a_talker_of_clauses_says_no_answers(tmp_path: Path) -> None:
    talker = talker_of(tmp_path, answers=False)
    with pytest.raises(EngineError, match="clauses"):
        talker.begin_answer(BeginAnswer((104,)), [65], last=True)
    assert all(talker.begin(SpeakText("a", 1)) for _ in range(SLOTS))
