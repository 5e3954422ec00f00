"""What a model expects after every position of a call whose tokens are given.

It reads with the same step as a live engine does, in chunks of a prefill, with pages that slide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.engines.models.moshi_lm.depth import write_codes
from duologue.engines.models.moshi_lm.temporal import text_logits
from duologue.engines.models.moshi_lm.token_grid import Row
from duologue.engines.runners.streaming_lm.frame_step import FrameStep, Network
from duologue.engines.runners.streaming_lm.pages import PageLimits

CHUNK = 64
PAGE_FRAMES = 32

Read: TypeAlias = Row | Tensor
"""Tokens of a position, or the embedding of one of a voice."""

Progress = Callable[[int, int], None]
"""Is told how many positions were read, and of how many."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected after a run of positions, as logarithms of probabilities.

    Shapes:
        text: [n, text_card] float32
        codes: [n, codebooks, audio_card] float32
    """

    text: Tensor
    codes: Tensor


def expected(
    network: Network,
    kept: torch.dtype,
    read: Sequence[Read],
    truth: Sequence[Read],
    first: int,
    tell: Progress = lambda done, total: None,
) -> Expected:
    """Read rows, and tell what is expected after each of them but the last.

    Args:
        kept: The type of keys and values.
        read: Of all positions, from the beginning.
        truth: What stands there: each depth step is given what stands before its own.
        first: Before this position nothing is told.
    """
    config, device = network.config, network.device
    positions = len(read) - 1
    sizes = PageLimits(1, page_frames=PAGE_FRAMES, window=config.window, chunk=CHUNK)
    pages = min(-(-positions // PAGE_FRAMES), sizes.width)
    limits = PageLimits(pages, page_frames=PAGE_FRAMES, window=config.window, chunk=CHUNK)
    step = FrameStep(network, 1, limits, kept)
    # What was never written is masked, but must be a number.
    step.pool.zero_()
    step.table[0, :pages] = torch.arange(1, pages + 1, dtype=torch.int32)
    text, codes = [], []
    for begin in range(0, positions, CHUNK):
        end = min(begin + CHUNK, positions)
        hidden = _read(step, read[begin:end], begin)
        told = max(first, begin)
        if told < end:
            hidden = hidden[told - begin :]
            following = torch.tensor(
                [truth[at + 1] for at in range(told, end)], dtype=torch.int32, device=device
            )
            text.append(_logarithms(text_logits(network.weights, hidden)))
            codes.append(_codes(network, hidden, following))
        tell(end, positions)
    return Expected(torch.cat(text), torch.cat(codes))


def _read(step: FrameStep, read: Sequence[Read], begin: int) -> Tensor:
    network = step.network
    config, device = network.config, network.device
    count = len(read)
    tokens = torch.zeros((count, config.streams), dtype=torch.int32, device=device)
    given = torch.zeros((count, config.dimension), dtype=network.dtype, device=device)
    is_given = torch.zeros(count, dtype=torch.bool, device=device)
    for number, row in enumerate(read):
        if isinstance(row, Tensor):
            given[number], is_given[number] = row, True
        else:
            tokens[number] = torch.tensor(row, dtype=torch.int32)
    at = torch.arange(begin, begin + count, dtype=torch.int32, device=device)
    oldest = (at - config.window + 1).clamp(min=0)
    return step.prefill(tokens, given, is_given, torch.stack((torch.zeros_like(at), oldest, at), 1))


def _codes(network: Network, hidden: Tensor, following: Tensor) -> Tensor:
    """Tell what each depth step expects, when those before it have chosen what stands there."""
    told: list[Tensor] = []

    def choose(step: int, logits: Tensor) -> Tensor:
        told.append(_logarithms(logits))
        return following[:, 1 + step].contiguous()

    write_codes(network.weights.depth, network.config, hidden, following[:, 0].contiguous(), choose)
    return torch.stack(told, dim=1)


def _logarithms(logits: Tensor) -> Tensor:
    return F.log_softmax(logits.float(), dim=-1)
