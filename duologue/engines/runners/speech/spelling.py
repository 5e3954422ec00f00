"""From the tokens of an answer to its text, piece by piece.

A piece is held back while it ends within a character, or may be the beginning of a text that ends
the answer; its tokens are held back with it. This module must not know models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tokenizers import Tokenizer

_BROKEN = "\ufffd"
"""What a tokenizer makes of a part of a character."""


class Spelt(NamedTuple):
    """The next tokens, and the text that they are."""

    ids: tuple[int, ...]
    text: str


NOTHING_SPELT = Spelt((), "")


class Spelling:
    """One answer.

    Args:
        stop: Texts before which it ends.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._stop = tuple(each for each in stop if each)
        self._held: list[int] = []
        self.chars = 0
        """Of all text that was given out."""

        self.ended = False
        """It has come to a text that ends it."""

    def add(self, token: int) -> Spelt:
        """Take the next token; returns what is certain now."""
        self._held.append(token)
        text = self._decoded(self._held)
        found = [place for place in (text.find(each) for each in self._stop) if place >= 0]
        if found:
            self.ended = True
            return self._cut(text[: min(found)])
        if text.endswith(_BROKEN) or any(_may_begin(text, each) for each in self._stop):
            return NOTHING_SPELT
        return self._given(self._held, text)

    def finish(self) -> Spelt:
        """Return what was held back: the answer is over."""
        return NOTHING_SPELT if self.ended else self._given(self._held, self._decoded(self._held))

    def _cut(self, text: str) -> Spelt:
        """Give the text before the end, and the tokens that are whole in it."""
        count = 0
        while len(self._decoded(self._held[: count + 1])) <= len(text) and count < len(self._held):
            count += 1
        return self._given(self._held[:count], text)

    def _given(self, ids: Sequence[int], text: str) -> Spelt:
        self.chars += len(text)
        given = Spelt(tuple(ids), text)
        self._held.clear()
        return given

    def _decoded(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=True)
        return text


def _may_begin(text: str, stop: str) -> bool:
    """Tell whether a text ends with the beginning of another one."""
    return any(text.endswith(stop[:size]) for size in range(1, len(stop)))
