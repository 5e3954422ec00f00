"""Everything that the temporal transformer of a few streams has read, position by position.

It forgets nothing, grows without bound and is plain: the truth for stores that are none of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.engines.models.moshi_lm.config import MoshiConfig


class DenseMemory:
    def __init__(self, config: MoshiConfig, streams: int) -> None:
        self._config = config
        # For each layer and stream: queries are turned, so what is kept needs no position.
        self._kept: list[list[list[Tensor]]] = [
            [[] for _ in range(streams)] for _ in range(config.layers)
        ]

    def rows(self, streams: Sequence[int]) -> DenseRows:
        """Begin a step whose rows belong to these streams, each at its next position."""
        return DenseRows(self, streams)

    def position(self, stream: int) -> int:
        return len(self._kept[-1][stream])

    def positions(self, streams: Sequence[int]) -> Tensor:
        """The next positions of streams; of one that is there several times, successive ones."""
        seen: dict[int, int] = {}
        found = []
        for stream in streams:
            found.append(seen.setdefault(stream, self.position(stream)))
            seen[stream] += 1
        return torch.tensor(found, dtype=torch.int32)

    def truncate(self, stream: int, positions: int) -> None:
        for layer in self._kept:
            del layer[stream][positions:]

    def attend(self, layer: int, stream: int, q: Tensor, kv: Tensor) -> Tensor:
        kept = self._kept[layer][stream]
        kept.append(kv)
        keys, values = torch.stack(kept[-self._config.window :], 2)  # [heads, window, size]
        return F.scaled_dot_product_attention(q[:, None], keys, values)[:, 0].flatten()

    def split(self, qkv: Tensor) -> Tensor:
        return qkv.view(-1, 3, self._config.heads, self._config.head_dimension)


class DenseRows:
    def __init__(self, memory: DenseMemory, streams: Sequence[int]) -> None:
        self._memory = memory
        self._streams = streams

    def write_and_attend(self, layer: int, qkv: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        q, k, v = self._memory.split(qkv).unbind(1)
        q, kv = turn(q, angles), torch.stack((turn(k, angles), v), 1)
        return torch.stack(
            [self._memory.attend(layer, s, q[i], kv[i]) for i, s in enumerate(self._streams)]
        )


def turn(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate pairs of channels that stand side by side."""
    cos, sin = (each[:, None] for each in angles)
    real, imaginary = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((real * cos - imaginary * sin, real * sin + imaginary * cos), -1)
    return turned.flatten(-2)
