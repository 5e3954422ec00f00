"""Cuts a stream of text into clauses for a voice: the first one early, later ones at ease.

A voice needs a few words before it can begin, and sounds best when it gets whole sentences. So
how long a clause may grow depends on how much speech is already ahead of the listener. This module
must not know what is done with the clauses.
"""
# Typographic signs are what this is about.
# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WORD = re.compile(r"\S+")
_SAYS_SOMETHING = re.compile(r"\w")
_CLOSERS = "\"'”’)]*_"
_ENDS = frozenset(".!?")
_PAUSES = frozenset(",;:—–")
_DASHES = frozenset(("-", "--", "–", "—"))
_ELLIPSES = ("...", "…")
_LIST_NUMBER = re.compile(r"(?:^|\n)\s*\d{1,2}[.)]$")
_INITIAL = re.compile(r"(?:^|[\s(\"'“.])[A-Za-z]\.$")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“])(?:Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|vs|etc|approx|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov"
    r"|Dec|Inc|Ltd|Co|dept|est|[Ff]ig|cf|al)\.$"
)
_PLAIN_WORD = re.compile(r"[\"'(*]*[A-Za-z]*[a-z]{2}[.!?,;]")
_BEGIN_A_PHRASE = frozenset(
    (
        *("and", "but", "or", "so", "because", "which", "that", "who", "where", "when", "while"),
        *("if", "with", "for", "from", "in", "on", "at", "by", "than", "after", "before", "until"),
        *("into", "through", "is", "are", "was", "were"),
    )
)
_LEAN_ON_THE_NEXT = frozenset(
    (
        *("a", "an", "the", "this", "these", "those", "some", "any", "no", "every", "each"),
        *("my", "your", "his", "her", "its", "our", "their", "of", "to", "as", "about", "around"),
        *("be", "been", "am", "i'm", "it's", "that's", "you're", "can", "could", "will", "would"),
        *("should", "must", "may", "might", "do", "does", "did", "don't", "has", "have", "had"),
        *("not", "very", "more", "most", "almost", "approximately", "i", "you", "he", "she", "it"),
        *("we", "they", "hundred", "thousand", "million", "billion"),
    )
)
"""With those that begin a phrase: a speaker does not stop behind them."""
_LEANING_WORDS = 4
"""So many words, at most, a first clause grows beyond its limit rather than end in a bad place."""
_LEAST_BREAK, _LEAST_MOST = 5, 9
"""Limits of later clauses, however little speech is ahead of the listener."""
_OPENING = '"“‘(['
_CODE = re.compile(r"```[\s\S]*?```")
_LONGEST_CODE_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Clause:
    """A run of the transcript; clauses follow each other without a gap.

    Args:
        text: With the white space before it, none behind it.
        end: Offset in the transcript just past the clause.
    """

    text: str
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseLimits:
    """When a clause is long enough.

    Units:
        Words.

    Args:
        first_pause: The first clause ends at a comma after at least so many ...
        first_break: ... or before a word that begins a phrase, after at least so many ...
        first_most: ... or anywhere after so many, but not behind "the" or within a name, unless
            a few more words have not helped.
        pause: A later clause ends at a comma after at least so many, or earlier while little
            speech is ahead of the listener; likewise the next two.
        phrase_break: As ``first_break``.
        most: No clause is longer.
        reserve: How many words a model writes while a person hears one.
    """

    first_pause: int = 1
    first_break: int = 5
    first_most: int = 9
    pause: int = 12
    phrase_break: int = 25
    most: int = 40
    reserve: float = 2.5


@dataclass(frozen=True, slots=True)
class _Lengths:
    pause: int
    phrase_break: int
    most: int
    leaning: int = 0
    """So many more, where it would end in a bad place."""


class ClauseCutter:
    """Takes text piece by piece, gives clauses as soon as they are complete."""

    def __init__(self, limits: ClauseLimits) -> None:
        self._limits = limits
        self._pending = ""
        self._end = 0
        self._words_given = 0

    @property
    def length(self) -> int:
        """How long all clauses given so far are together."""
        return self._end

    def feed(self, text: str) -> Iterator[Clause]:
        """Add text; yields what is complete now."""
        self._pending += text
        if not self._end:
            self._pending = self._pending.lstrip()
        while (cut := self._find_cut()) is not None:
            yield self._take(cut)

    def finish(self) -> Iterator[Clause]:
        """Say that no text follows; yields the rest."""
        rest = self._pending.rstrip()
        if rest:
            yield self._take(len(rest))

    def _take(self, cut: int) -> Clause:
        text, self._pending = self._pending[:cut], self._pending[cut:]
        self._end += cut
        self._words_given += len(_WORD.findall(text))
        return Clause(text, self._end)

    def _find_cut(self) -> int | None:
        if self._pending.count("```") % 2 and len(self._pending) < _LONGEST_CODE_CHARS:
            return None
        # Code is one long word: nothing is cut in it.
        text = _CODE.sub(lambda code: "x" * len(code[0]), self._pending)
        lengths = self._lengths()
        words = previous_end = 0
        for match in _WORD.finditer(text):
            start, end = match.span()
            if words and (
                "\n" in text[previous_end:start] or _begins_phrase(match, words, lengths)
            ):
                return previous_end
            words += _SAYS_SOMETHING.search(match.group()) is not None
            is_whole = end < len(text)
            word = match.group().rstrip(_CLOSERS)
            if not is_whole and (self._words_given or not _PLAIN_WORD.fullmatch(word)):
                return None
            if words and word:
                until_word = text[: start + len(word)]
                if _is_end(until_word, text[end:]):
                    return end
                if words >= lengths.pause and _is_pause(until_word, text[end:]):
                    return end
            if words >= lengths.most and is_whole and not word[-1:].isdigit():
                is_bad = words < lengths.most + lengths.leaning and _leans(word, text[end:])
                if not is_bad:
                    return end
            previous_end = end
        return None

    def _lengths(self) -> _Lengths:
        limits = self._limits
        if not self._words_given:
            return _Lengths(
                limits.first_pause, limits.first_break, limits.first_most, _LEANING_WORDS
            )
        ahead = self._words_given * limits.reserve
        return _Lengths(
            pause=round(min(limits.pause, max(2, ahead / 3))),
            phrase_break=round(min(limits.phrase_break, max(_LEAST_BREAK, ahead / 1.6))),
            most=round(min(limits.most, max(_LEAST_MOST, ahead))),
        )


def _begins_phrase(match: re.Match[str], words: int, lengths: _Lengths) -> bool:
    if words < lengths.phrase_break:
        return False
    if match.group()[0] in _OPENING:
        return True
    if match.group().lower() not in _BEGIN_A_PHRASE:
        return False
    after = match.string[match.end() :]
    # Without white space it may become another word. If the end of the sentence is known already,
    # it is the better place.
    return bool(after) and not _ENDS.intersection(after)


def _leans(word: str, after: str) -> bool:
    """Tell whether ``word`` belongs to what follows, or is part of a name that goes on."""
    following = after.lstrip()
    if word[:1].isupper() and following[:1].isupper():
        return True
    said = word.strip(_OPENING).lower().replace("’", "'")
    return said in _LEAN_ON_THE_NEXT or said in _BEGIN_A_PHRASE or bool(_ABBREVIATION.search(word))


def _is_end(text: str, after: str) -> bool:
    """Tell whether ``text`` ends with the end of a sentence, not with an abbreviation."""
    if text[-1] not in _ENDS or text.endswith(_ELLIPSES):
        return False
    if text[-1] != ".":
        return True
    following = after.lstrip()[:1]
    if following.islower() or (following.isdigit() and text.endswith("No.")):
        return False
    return not any(pattern.search(text) for pattern in (_LIST_NUMBER, _INITIAL, _ABBREVIATION))


def _is_pause(text: str, after: str) -> bool:
    """Tell whether ``text`` ends where a speaker may pause."""
    if text.endswith(_ELLIPSES) or text[-2:].strip() in _DASHES:
        return True
    in_a_number = text[-2:-1].isdigit() and after.lstrip()[:1].isdigit()
    return text[-1] in _PAUSES and not in_a_number
