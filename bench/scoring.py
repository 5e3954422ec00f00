"""Is an answer correct, is it coherent, and how many words did a recogniser get wrong?"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import soundfile
import yaml
from speech import Floats

QUESTIONS = Path(__file__).resolve().parents[1] / "duologue" / "assets" / "questions"

MARKUP = re.compile(
    r"```|\*\*|__|^\s*[#*-]\s|<\||https?:|\b(?:User|Assistant|System):|[{}\[\]]", re.M
)
CLOSING = "\"'\u201d\u2019)"
SENTENCE_END = re.compile(rf"[.!?][{CLOSING}]*$")
MIN_WORDS = 2
MAX_REPEATS = 2
RUN_WORDS = 3

UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SPELLINGS = {
    "color": "colour",
    "colors": "colours",
    "favorite": "favourite",
    "ok": "okay",
    "mr": "mister",
    "mrs": "missus",
    "dr": "doctor",
}


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
    return all(_mentions(answer, group) for group in question.keywords)


def incoherence(question: Question, answer: str) -> str | None:
    """Why an answer does not read as a spoken reply to the question; None when it does.

    A rule of thumb that needs no judge: whole sentences, no markup, no loop, on the topic.
    """
    words = normalise(answer)
    if len(words) < MIN_WORDS:
        return f"only {len(words)} words"
    if not SENTENCE_END.search(answer.strip()):
        return "ends in the middle of a sentence"
    if found := MARKUP.search(answer):
        return f"markup: {found.group().strip()!r}"
    runs = [tuple(words[i : i + RUN_WORDS]) for i in range(len(words) - RUN_WORDS + 1)]
    if any(runs.count(run) > MAX_REPEATS for run in runs):
        return "repeats itself"
    if not _mentions(answer, question.topic):
        return "off the topic"
    return None


def normalise(text: str) -> list[str]:
    """Words in lower case, numbers spelt out, no punctuation, one spelling."""
    lowered = text.lower().replace("\u2019", "'")
    lowered = re.sub(r"(?<=\d),(?=\d{3})", "", lowered)
    lowered = re.sub(r"\d+", lambda match: f" {spell(int(match.group()))} ", lowered)
    words = re.sub(r"[^a-z' ]+", " ", lowered).split()
    stripped = [word.strip("'") for word in words]
    return [SPELLINGS.get(word, word) for word in stripped if word]


def spell(number: int) -> str:
    """A whole number below a million in words, as it is spoken; larger ones digit by digit."""
    if number >= 1_000_000:
        return " ".join(UNITS[int(digit)] for digit in str(number))
    if number >= 1000:
        rest = f" {spell(number % 1000)}" if number % 1000 else ""
        return f"{spell(number // 1000)} thousand{rest}"
    if number >= 100:
        rest = f" {spell(number % 100)}" if number % 100 else ""
        return f"{UNITS[number // 100]} hundred{rest}"
    if number >= 20:
        return TENS[number // 10] + (f" {UNITS[number % 10]}" if number % 10 else "")
    return UNITS[number]


def word_errors(reference: str, heard: str) -> tuple[int, int]:
    """Substituted, missing and added words, and the number of words in the reference."""
    wanted, got = normalise(reference), normalise(heard)
    row = list(range(len(got) + 1))
    for i, word in enumerate(wanted, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(got, 1):
            change = before + (word != other)
            before = row[j]
            row[j] = min(change, row[j] + 1, row[j - 1] + 1)
    return row[-1], len(wanted)


def _mentions(text: str, words: Sequence[str]) -> bool:
    spoken = f" {' '.join(normalise(text))} "
    for word in words:
        stem = " ".join(normalise(word.removesuffix("*")))
        if f" {stem}{'' if word.endswith('*') else ' '}" in spoken:
            return True
    return False
