"""What a model that thinks hands to one that talks: an answer, word by word.

A part of the union of all payloads (see ``payloads``), in a file of its own. This module must not
know how either of them works.
"""

from __future__ import annotations

from duologue.engines.payload_base import PayloadBase


class SensedSpan(PayloadBase, frozen=True):
    """What the model that thinks made of a picture or a recording.

    Shapes:
        features: [count, D], as raw bytes of ``dtype``

    Args:
        start: Its place among the tokens of what the person said.
        dtype: As torch names it.
        grid: Rows and columns of a picture, ``count`` in all; none: it is a recording.
    """

    start: int
    count: int
    features: bytes
    dtype: str
    grid: tuple[int, ...] = ()


class BeginAnswer(PayloadBase, frozen=True):
    """Begin to say an answer whose words are still to be found; ``AnswerWords`` follow.

    Args:
        asked: Tokens of all that the person said, as both models read it.
        voice: Whose; empty: the model's default.
        sensed: What was seen and heard among them, in order.
    """

    asked: tuple[int, ...]
    voice: str = ""
    sensed: tuple[SensedSpan, ...] = ()

    def cost(self) -> int:
        """Nothing: no word of the answer is in it."""
        return 0


class AnswerWords(PayloadBase, frozen=True):
    """The next tokens of an answer.

    Args:
        text_end: The offset in the answer's text behind them.
        last: None follow.
    """

    ids: tuple[int, ...]
    text_end: int
    last: bool = False

    def cost(self) -> int:
        """Return its tokens."""
        return len(self.ids)
