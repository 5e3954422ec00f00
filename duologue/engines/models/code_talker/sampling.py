"""How codes are drawn: each row by its own seed, in one pass over its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from duologue.kernels.gumbel_top_k import gumbel_top_k


@dataclass(frozen=True, slots=True, kw_only=True)
class Taste:
    """How daring a draw is.

    Args:
        temperature: 0: the likeliest is taken.
        top_k: Among how many of the likeliest is drawn.
        top_p: Of these, only as many as share so much of all chances; 1: all.
    """

    temperature: float
    top_k: int
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class Draw:
    """What makes draws repeatable.

    Shapes:
        seeds: [R] int64, one for each utterance
        counters: [R] int32, the frame of each utterance
    """

    seeds: Tensor
    counters: Tensor

    @classmethod
    def of(cls, seeds: Sequence[int], counters: Sequence[int], device: torch.device) -> Draw:
        """Take them from numbers."""
        return cls(
            torch.tensor(seeds, dtype=torch.int64, device=device),
            torch.tensor(counters, dtype=torch.int32, device=device),
        )

    def take(self, scores: Tensor, taste: Taste, place: int) -> Tensor:
        """Draw one code of each row.

        Shapes:
            scores: [R, V]
            returns: [R] int64

        Args:
            place: Of the code in its frame: no two draws of a frame share their noise.
        """
        scores = scores.float()
        if taste.top_p < 1 and taste.temperature > 0:
            scores = within_top_p(scores, taste)
        rows = len(scores)
        device = scores.device
        temperature = torch.full((rows,), taste.temperature, device=device)
        top_k = torch.full((rows,), taste.top_k, dtype=torch.int32, device=device)
        drawn = gumbel_top_k(scores, temperature, top_k, self.seeds, self.counters, place)
        return drawn.long()


def within_top_p(scores: Tensor, taste: Taste) -> Tensor:
    """Rule out all but the likeliest that together have ``top_p`` of the chances.

    The chances are those among the ``top_k``, at the temperature.

    Shapes:
        scores: [R, V] float32
        returns: the same
    """
    best = scores.topk(min(taste.top_k, scores.shape[1]), dim=-1)
    chances = (best.values / taste.temperature).softmax(dim=-1)
    before = chances.cumsum(dim=-1) - chances
    kept = best.values.masked_fill(before >= taste.top_p, float("-inf"))
    return torch.full_like(scores, float("-inf")).scatter(1, best.indices, kept)


def less_often(scores: Tensor, said: Tensor, penalty: float) -> Tensor:
    """Make what was said already less likely.

    Shapes:
        scores: [R, V]
        said: [R, V] bool
        returns: [R, V]

    Source:
        Keskar et al., "CTRL" (2019), section 4.1.
    """
    lowered = torch.where(scores > 0, scores / penalty, scores * penalty)
    return torch.where(said, lowered, scores)
