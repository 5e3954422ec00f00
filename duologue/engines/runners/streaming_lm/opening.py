"""How a stream of a lockstep model begins."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from duologue.engines.models.moshi_lm.prompt import Prompt
from duologue.engines.models.moshi_lm.sampling import Taste
from duologue.engines.models.moshi_lm.token_grid import Row


@dataclass(frozen=True, slots=True)
class Opening:
    """How a stream begins.

    Args:
        voice: Ready-made embeddings of the first positions, [n, D], before the rows of the prompt.
        name: Of this beginning, the same for all that begin so; empty: it is not shared.
        pinned: Keep seeing all of it when the window slides.
    """

    prompt: Prompt
    voice: Tensor | None = None
    taste: Taste = field(default_factory=Taste)
    seed: int = 0
    name: str = ""
    pinned: bool = False

    @property
    def positions(self) -> int:
        """How many positions come before the first frame."""
        return len(self.prompt.rows) + (0 if self.voice is None else len(self.voice))

    def rows(self) -> list[Row | None]:
        """Return the tokens at each of them; ``None``: it is the embedding of ``voice``."""
        voice = 0 if self.voice is None else len(self.voice)
        return [*[None] * voice, *self.prompt.rows]
