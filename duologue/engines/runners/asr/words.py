"""Tokens with their times as words with theirs.

This module must not know models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

_BROKEN = "\ufffd"
"""What a decoder gives for part of a character."""


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word, with the white space before it and the punctuation behind it.

    Args:
        end_s: Of the word itself, without the silence that its punctuation stands for.
    """

    text: str
    start_s: float
    end_s: float
    probability: float
    tokens: tuple[int, ...]


def joined_words(
    tokens: Sequence[int],
    decode: Callable[[list[int]], str],
    begins: Sequence[float],
    probabilities: Sequence[float],
) -> list[TimedWord]:
    """Put tokens together to words: each begins with white space.

    Args:
        decode: Tokens -> text; part of a character gives U+FFFD.
        begins: When each token begins, in seconds, and when the last one ends.
        probabilities: Of each token.
    """
    words: list[TimedWord] = []
    first = 0
    for text, last in _pieces(tokens, decode):
        starts_word = not words or text[:1].isspace()
        says_something = any(char.isalnum() for char in text)
        if starts_word:
            words.append(
                TimedWord(
                    text,
                    begins[first],
                    begins[last],
                    min(probabilities[first:last], default=0.0),
                    tuple(tokens[first:last]),
                )
            )
        else:
            word = words[-1]
            words[-1] = TimedWord(
                word.text + text,
                word.start_s,
                begins[last] if says_something else word.end_s,
                min([word.probability, *(probabilities[first:last] if says_something else ())]),
                (*word.tokens, *tokens[first:last]),
            )
        first = last
    return words


def _pieces(tokens: Sequence[int], decode: Callable[[list[int]], str]) -> list[tuple[str, int]]:
    """Whole characters, with the index just past their last token."""
    pieces = []
    first = 0
    for last in range(1, len(tokens) + 1):
        text = decode(list(tokens[first:last]))
        if _BROKEN in text and last < len(tokens):
            continue
        pieces.append((text, last))
        first = last
    return pieces
