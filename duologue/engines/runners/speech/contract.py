"""What a speech model must be able to do; all else is the same for every model.

Numbers pass as numpy arrays, so nothing here needs torch. This module must not know any model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from duologue.engines.answer_payloads import BeginAnswer
from duologue.engines.payloads import SpeakText

Codes: TypeAlias = NDArray[np.uint16]
"""[frames, books]"""

Samples: TypeAlias = NDArray[np.float32]
"""[samples], from -1 to 1"""


class Talker(Protocol):
    """Makes frames of codes of a text, one after the other.

    Concurrency:
        Called from one thread.
    """

    books: int
    """Codes of a frame."""

    slots: int
    """How many utterances there may be at a time."""

    def begin(self, clause: SpeakText) -> Any:
        """Read a text; returns the utterance, which holds all that its next frame depends on.

        Raises:
            EngineError: It cannot be said, as it is too long or its voice is not known.
        """
        ...

    def begin_answer(self, asked: BeginAnswer, words: Sequence[int], *, last: bool) -> Any:
        """Begin to say an answer of which some words are known, at least one.

        Args:
            last: There are no others.

        Raises:
            EngineError: It cannot be said; some talkers only say clauses.
        """
        ...

    def add_words(self, utterance: Any, words: Sequence[int], *, last: bool) -> None:
        """Let an answer go on."""
        ...

    def waits(self, utterance: Any) -> bool:
        """Tell whether the next frame needs words that have not come."""
        ...

    def next_frames(self, utterances: Sequence[Any]) -> Sequence[Codes | None]:
        """Make the next frame of each utterance; ``None`` for one that has said everything.

        Shapes:
            returns: [1, books] each
        """
        ...

    def end(self, utterance: Any) -> None:
        """Free what an utterance holds."""
        ...


class Codec(Protocol):
    """Makes sound of frames, in steps of any length, as if it had all of them at once.

    Concurrency:
        Called from one thread.
    """

    rate_hz: int

    books: int
    """Codes of a frame."""

    slots: int
    """How many streams there may be at a time."""

    def begin(self) -> Any:
        """Begin an utterance; returns its stream, which holds all that its next frame needs."""
        ...

    def decode(self, streams: Sequence[Any], codes: Sequence[Codes]) -> Sequence[Samples]:
        """Sound the next frames of each stream, at least one."""
        ...

    def length(self, frames: int) -> int:
        """Return how many samples the first ``frames`` frames of an utterance make."""
        ...

    def end(self, stream: Any) -> None:
        """Free what a stream holds."""
        ...
