"""Turns what a language model writes into what a voice can say, and remembers where it stood.

Markup goes, numbers and units become words. Pure and fast enough for the event loop: one pass of
one compiled pattern. This module must not know clauses, voices or synthesisers.
"""
# Typographic signs are what this is about.
# ruff: noqa: RUF001

from __future__ import annotations

import re
from dataclasses import dataclass, field

from duologue.duplex_plugins.spoken.spoken_rules import MASTER, speak

_WORD = re.compile(r"\S+")
# Most clauses of a conversation are such that nothing in them needs a rule.
_PLAIN = re.compile(r"(?:[A-Za-z ]|(?<=[A-Za-z])(?:[.!?;:,](?= |$)|['’-](?=[A-Za-z])))*")
_ABBREVIATED = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|vs|etc|approx)\b")
_CLOSES_UP = frozenset(",.;:!?…)]}%'’”")
_OPENS = ("(", "[", "“", "‘")


@dataclass(frozen=True, slots=True)
class SpokenText:
    """Text for a voice.

    Args:
        text: Words and punctuation, single spaces, no markup. Empty where nothing can be said.
        word_ends: For words whose place is known exactly, the offset just past the word in
            ``text`` and the offset in the written text that it speaks up to; both increase.
    """

    text: str
    word_ends: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Builder:
    parts: list[str] = field(default_factory=list)
    length: int = 0
    ends: list[tuple[int, int]] = field(default_factory=list)
    space_pending: bool = False

    def literal(self, text: str, start: int) -> None:
        """Copy written text; ``start`` is its offset."""
        position = 0
        for match in _WORD.finditer(text):
            if match.start() > position:
                self.space_pending = True
            self._word(match.group(), start + match.end())
            position = match.end()
        if position < len(text):
            self.space_pending = True

    def replacement(self, spoken: str, end: int) -> None:
        """Add what is said in place of written text that ends at ``end``."""
        words = spoken.split()
        if not words:
            if spoken:
                self.space_pending = True
            elif self.ends and self.ends[-1][0] == self.length and not self.space_pending:
                self.ends[-1] = (self.length, end)
            return
        if spoken[0] == " ":
            self.space_pending = True
        self._word(" ".join(words), end)
        if spoken[-1] == " ":
            self.space_pending = True

    def _word(self, word: str, end: int) -> None:
        last = self.parts[-1][-1] if self.parts else ""
        if word[0] in _CLOSES_UP and self.space_pending and (len(word) == 1 or not last.isalnum()):
            self.space_pending = False
        if word[0] in ",.;:" and (not last or last in ",;:.!?(" or last in _OPENS):
            word = word.lstrip(",.;: ")
            if not word:
                self._move_last_end(end)
                return
        if self.space_pending and self.parts and last not in _OPENS:
            self.parts.append(" ")
            self.length += 1
        self.space_pending = False
        self.parts.append(word)
        self.length += len(word)
        self.ends.append((self.length, end))

    def _move_last_end(self, end: int) -> None:
        if self.ends and self.ends[-1][0] == self.length:
            self.ends[-1] = (self.length, end)

    def finish(self) -> SpokenText:
        text = "".join(self.parts)
        if not any(char.isalnum() for char in text):
            return SpokenText("", ())
        ends: list[tuple[int, int]] = []
        for spoken_end, written_end in self.ends:
            if spoken_end == len(text) or text[spoken_end] == " ":
                if ends and ends[-1][0] == spoken_end:
                    ends.pop()
                ends.append((spoken_end, written_end))
        return SpokenText(text, tuple(ends))


def speakable(written: str) -> SpokenText:
    """Return ``written`` as a voice should say it."""
    builder = _Builder()
    position = 0
    if _PLAIN.fullmatch(written) and not _ABBREVIATED.search(written):
        builder.literal(written, 0)
        return builder.finish()
    for match in MASTER.finditer(written):
        builder.literal(written[position : match.start()], position)
        builder.replacement(speak(match), match.end())
        position = match.end()
    builder.literal(written[position:], position)
    return builder.finish()
