"""Words as they are spoken, so that two transcripts of the same speech compare equal.

This module must not know where texts come from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SPELLINGS = {
    "color": "colour",
    "colors": "colours",
    "favorite": "favourite",
    "ok": "okay",
    "mr": "mister",
    "mrs": "missus",
    "dr": "doctor",
}
_LARGEST = 1_000_000


def spoken_words(text: str) -> list[str]:
    """Return the words in lower case, numbers spelt out, no punctuation, one spelling."""
    lowered = text.lower().replace("\u2019", "'")
    lowered = re.sub(r"(?<=\d),(?=\d{3})", "", lowered)
    lowered = re.sub(r"\d+", lambda match: f" {_spelt(match.group())} ", lowered)
    words = re.sub(r"[^a-z' ]+", " ", lowered).split()
    stripped = (word.strip("'") for word in words)
    return [_SPELLINGS.get(word, word) for word in stripped if word]


def word_errors(wanted: Sequence[str], got: Sequence[str]) -> int:
    """Count the words that were substituted, left out or added."""
    row = list(range(len(got) + 1))
    for count, word in enumerate(wanted, 1):
        before, row[0] = row[0], count
        for place, other in enumerate(got, 1):
            change = before + (word != other)
            before = row[place]
            row[place] = min(change, row[place] + 1, row[place - 1] + 1)
    return row[-1]


def mentions(text: str, words: Sequence[str]) -> bool:
    """Tell whether a text holds one of some words or phrases; a trailing ``*`` is any ending."""
    spoken = f" {' '.join(spoken_words(text))} "
    for word in words:
        stem = " ".join(spoken_words(word.removesuffix("*")))
        if f" {stem}{'' if word.endswith('*') else ' '}" in spoken:
            return True
    return False


def likely_prefixes(whole: Sequence[str], heard: Sequence[str]) -> tuple[int, int]:
    """How many words of a text were heard, from a transcript of the beginning of its speech.

    Returns:
        The least and the largest number of words that explain the transcript equally well.
    """
    errors = [word_errors(whole[:count], heard) for count in range(len(whole) + 1)]
    best = [count for count, number in enumerate(errors) if number == min(errors)]
    return best[0], best[-1]


def _spelt(digits: str) -> str:
    number = int(digits)
    return _spell(number) if number < _LARGEST else " ".join(_UNITS[int(each)] for each in digits)


def _spell(number: int) -> str:
    if number >= 1000:
        rest = f" {_spell(number % 1000)}" if number % 1000 else ""
        return f"{_spell(number // 1000)} thousand{rest}"
    if number >= 100:
        rest = f" {_spell(number % 100)}" if number % 100 else ""
        return f"{_UNITS[number // 100]} hundred{rest}"
    if number >= 20:
        return _TENS[number // 10] + (f" {_UNITS[number % 10]}" if number % 10 else "")
    return _UNITS[number]
