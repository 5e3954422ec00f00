"""The whole network, streamed: any number of frames a step, exact at every border.

The library's own decoding in chunks loses 555 samples at each border, since each of its transposed
convolutions leaves out the first outputs of every chunk, and it forgets what attention saw. Here
only the first step of a stream leaves them out, as the whole recording at once would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi.slots import Slots
from duologue.core.errors import ConfigError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code2wav.layers import (
    CausalConvolution,
    CausalUpsampling,
    ConvNext,
    Layer,
    Residual,
    Snake,
)
from duologue.engines.models.decoder.config import DecoderConfig
from duologue.engines.models.decoder.stack import DecoderStack

_DILATIONS = (1, 3, 9)


class Code2Wav:
    """Decodes streams of codes, each in a slot of its own.

    Args:
        name: Prefix of its weights.
        section: Its part of ``config.json``.
        longest: Most frames of a step.
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        name: str,
        section: Mapping[str, Any],
        *,
        slots: int,
        longest: int,
    ) -> None:
        try:
            window = int(section["sliding_window"])
            self.books = int(section["num_quantizers"])
            self._codes = int(section["codebook_size"])
            coarse = [int(each) for each in section["upsampling_ratios"]]
            fine = [int(each) for each in section["upsample_rates"]]
        except KeyError as exc:
            raise ConfigError(f"config.json does not say {exc.args[0]} of code2wav") from exc
        config = replace(DecoderConfig.read(section), window=window)
        shape = (self.books * self._codes, config.dimension)
        self._table = folder.tensor(f"{name}.code_embedding.weight", *shape)
        self.device = self._table.device
        self._begins = torch.arange(0, shape[0], self._codes, device=self.device)
        self._transformer = DecoderStack(
            folder, f"{name}.pre_transformer", config, slots=slots, length=window + longest - 1
        )
        self._state = Slots(slots, device=self.device, dtype=self._table.dtype)
        self._rates: list[tuple[int, int]] = []
        """Of each layer that raises it, with what it leaves out at first."""
        self._layers = [
            *self._coarse(folder, f"{name}.upsample", coarse),
            *self._fine(folder, f"{name}.decoder", fine),
        ]

    def reset(self, slot: int) -> None:
        """Begin a new stream in a slot."""
        self._state.reset(slot)
        self._transformer.forget(slot)

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
        x = F.embedding(codes.clamp(0, self._codes - 1) + self._begins, self._table).mean(dim=2)
        x = self._transformer.step(x, slots, starts).transpose(1, 2)
        rows = torch.tensor(slots, device=self.device)
        for layer in self._layers:
            x = layer(x, rows, first=not starts[0])
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
        self._rates.append((rate, layer.left_out))
        return layer
