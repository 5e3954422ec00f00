"""Is an answer correct, is it coherent, and how many words did a recogniser get wrong?"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import soundfile
import yaml
from speech import Floats

from duologue.commands.demo import words
from duologue.commands.demo.words import mentions, spoken_words

QUESTIONS = Path(__file__).resolve().parents[1] / "duologue" / "assets" / "questions"

MARKUP = re.compile(
    r"```|\*\*|__|^\s*[#*-]\s|<\||https?:|\b(?:User|Assistant|System):|[{}\[\]]", re.M
)
CLOSING = "\"'\u201d\u2019)"
SENTENCE_END = re.compile(rf"[.!?][{CLOSING}]*$")
MIN_WORDS = 2
MAX_REPEATS = 2
RUN_WORDS = 3


@dataclass(frozen=True)
class Question:
    """A question of the published set with the checks for its answer."""

    id: str
    text: str
    keywords: tuple[tuple[str, ...], ...]
    topic: tuple[str, ...]

    @property
    def audio_path(self) -> Path:
        return QUESTIONS / f"{self.id}.flac"

    def audio(self) -> tuple[Floats, int]:
        samples, sample_rate_hz = soundfile.read(self.audio_path, dtype="float32")
        return samples, int(sample_rate_hz)


def load_questions() -> list[Question]:
    entries: list[dict[str, Any]] = yaml.safe_load((QUESTIONS / "questions.yaml").read_text())
    return [
        Question(
            entry["id"],
            entry["text"],
            tuple(tuple(group) for group in entry["keywords"]),
            tuple(entry["topic"]),
        )
        for entry in entries
    ]


def is_correct(question: Question, answer: str) -> bool:
    """At least one word of every keyword group is in the answer."""
    return all(mentions(answer, group) for group in question.keywords)


def incoherence(question: Question, answer: str) -> str | None:
    """Why an answer does not read as a spoken reply to the question; None when it does.

    A rule of thumb that needs no judge: whole sentences, no markup, no loop, on the topic.
    """
    said = spoken_words(answer)
    if len(said) < MIN_WORDS:
        return f"only {len(said)} words"
    if not SENTENCE_END.search(answer.strip()):
        return "ends in the middle of a sentence"
    if found := MARKUP.search(answer):
        return f"markup: {found.group().strip()!r}"
    runs = [tuple(said[i : i + RUN_WORDS]) for i in range(len(said) - RUN_WORDS + 1)]
    if any(runs.count(run) > MAX_REPEATS for run in runs):
        return "repeats itself"
    if not mentions(answer, question.topic):
        return "off the topic"
    return None


def word_errors(reference: str, heard: str) -> tuple[int, int]:
    """Substituted, missing and added words, and the number of words in the reference."""
    wanted = spoken_words(reference)
    return words.word_errors(wanted, spoken_words(heard)), len(wanted)
