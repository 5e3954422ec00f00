"""What a model that thinks hands to one that talks: an answer, word by word.

A part of the union of all payloads (see ``payloads``), in a file of its own. This module must not
know how either of them works.
"""

from __future__ import annotations

from duologue.engines.payload_base import PayloadBase


class BeginAnswer(PayloadBase, frozen=True):
    """Begin to say an answer whose words are still to be found; ``AnswerWords`` follow.

    Args:
        asked: Tokens of all that the person said, as both models read it.
        voice: Whose; empty: the model's default.
    """

    asked: tuple[int, ...]
    voice: str = ""

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
