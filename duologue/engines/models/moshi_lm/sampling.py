"""How the tokens of the next frame are drawn: each row by its own seed and its own taste."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor

from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.depth import write_codes
from duologue.engines.models.moshi_lm.temporal import text_logits
from duologue.engines.models.moshi_lm.weights import MoshiWeights
from duologue.kernels.gumbel_top_k import gumbel_top_k


@dataclass(frozen=True, slots=True, kw_only=True)
class Taste:
    """How daring a stream is. The defaults are those of both reference implementations.

    Args:
        text_temperature, code_temperature: 0: always the likeliest.
        text_top_k, code_top_k: Among how many of the likeliest is drawn.
    """

    text_temperature: float = 0.7
    text_top_k: int = 25
    code_temperature: float = 0.8
    code_top_k: int = 250


def taste_of(temperature: float | None, top_k: int | None = None) -> Taste:
    """Return the taste of a stream that is to be so daring; ``None``: as the model was made for."""
    taste = Taste()
    if temperature is not None:
        taste = replace(taste, text_temperature=temperature, code_temperature=temperature)
    if top_k is not None:
        taste = replace(taste, text_top_k=top_k, code_top_k=top_k)
    return taste


GREEDY = Taste(text_temperature=0.0, code_temperature=0.0)


class Draw(NamedTuple):
    """The taste and the seed of each row.

    Shapes:
        text_temperature, code_temperature: [R] float32
        text_top_k, code_top_k: [R] int32
        seeds: [R] int64, one for each stream
        counters: [R] int32, the position of each stream
    """

    text_temperature: Tensor
    text_top_k: Tensor
    code_temperature: Tensor
    code_top_k: Tensor
    seeds: Tensor
    counters: Tensor


def next_tokens(
    weights: MoshiWeights, config: MoshiConfig, hidden: Tensor, draw: Draw
) -> tuple[Tensor, Tensor]:
    """Choose what stands at the next position of each row.

    Shapes:
        hidden: [R, D], from the temporal transformer
        returns: text [R] and codes [R, codebooks], int32
    """
    text = gumbel_top_k(
        text_logits(weights, hidden),
        draw.text_temperature,
        draw.text_top_k,
        draw.seeds,
        draw.counters,
        0,
    )

    def choose(step: int, logits: Tensor) -> Tensor:
        return gumbel_top_k(
            logits,
            draw.code_temperature,
            draw.code_top_k,
            draw.seeds,
            draw.counters,
            1 + step,
        )

    return text, write_codes(weights.depth, config, hidden, text, choose)
