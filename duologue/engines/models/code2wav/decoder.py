"""The whole network, streamed: any number of frames a step, exact at every border.

The libraries' own decoding in chunks is not: Qwen3-Omni's loses 555 samples at each border, since
each of its transposed convolutions leaves out the first outputs of every chunk, and both forget
what attention saw. Here only the first step of a stream leaves anything out, as the whole at once
would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from duologue.codecs.mimi.slots import Slots
from duologue.core.errors import ConfigError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code2wav.fronts import Front
from duologue.engines.models.code2wav.layers import (
    CausalConvolution,
    CausalUpsampling,
    ConvNext,
    Layer,
    Residual,
    Snake,
)

_DILATIONS = (1, 3, 9)


class Code2Wav:
    """Decodes streams of codes, each in a slot of its own.

    Args:
        name: Prefix of its weights; empty: none.
        section: Its part of ``config.json``.
        late: The first outputs of a stream, which lack a past, are left out.
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        name: str,
        section: Mapping[str, Any],
        front: Front,
        *,
        slots: int,
        late: bool = True,
    ) -> None:
        try:
            coarse = [int(each) for each in section["upsampling_ratios"]]
            fine = [int(each) for each in section["upsample_rates"]]
        except KeyError as exc:
            raise ConfigError(f"config.json does not say {exc.args[0]} of the codec") from exc
        self._front = front
        self.books = front.books
        self._late = late
        self.device = front.device
        self._state = Slots(slots, device=front.device, dtype=torch.float32)
        self._rates: list[tuple[int, int]] = []
        """Of each layer that raises it, with what it leaves out at first."""
        prefix = f"{name}." if name else ""
        self._layers = [
            *self._coarse(folder, f"{prefix}upsample", coarse),
            *self._fine(folder, f"{prefix}decoder", fine),
        ]

    def reset(self, slot: int) -> None:
        """Begin a new stream in a slot."""
        self._state.reset(slot)
        self._front.reset(slot)

    def length(self, frames: int) -> int:
        """Return how many samples the first ``frames`` frames of a stream make."""
        count = frames
        for rate, left_out in self._rates:
            count = max(0, count * rate - left_out)
        return count

    def step(self, codes: Tensor, slots: Sequence[int], starts: Sequence[int]) -> Tensor:
        """Decode the next frames of some streams, which all begin now or all began before.

        Shapes:
            codes: [R, n, books] int64
            returns: [R, samples] float32

        Args:
            starts: Frames of each stream before these.
        """
        x = self._front(codes, slots, starts)
        rows = torch.tensor(slots, device=self.device)
        for layer in self._layers:
            x = layer(x, rows, first=self._late and not starts[0])
        return x[:, 0].clamp(-1, 1).float()

    def _coarse(self, folder: CheckpointFolder, name: str, rates: Sequence[int]) -> list[Layer]:
        layers: list[Layer] = []
        for index, rate in enumerate(rates):
            layers.append(self._raising(folder, f"{name}.{index}.0", rate))
            layers.append(ConvNext(folder, f"{name}.{index}.1", self._state))
        return layers

    def _fine(self, folder: CheckpointFolder, name: str, rates: Sequence[int]) -> list[Layer]:
        layers: list[Layer] = [CausalConvolution(folder, f"{name}.0", self._state)]
        for index, rate in enumerate(rates, 1):
            block = f"{name}.{index}.block"
            layers.append(Snake(folder, f"{block}.0"))
            layers.append(self._raising(folder, f"{block}.1", rate))
            layers += [
                Residual(folder, f"{block}.{place}", self._state, dilation)
                for place, dilation in enumerate(_DILATIONS, 2)
            ]
        end = len(rates) + 1
        layers.append(Snake(folder, f"{name}.{end}"))
        layers.append(CausalConvolution(folder, f"{name}.{end + 1}", self._state))
        return layers

    def _raising(self, folder: CheckpointFolder, name: str, rate: int) -> CausalUpsampling:
        layer = CausalUpsampling(folder, name, self._state, rate)
        self._rates.append((rate, layer.left_out if self._late else 0))
        return layer
