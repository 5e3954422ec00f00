"""From codes to what the convolutions raise to sound: a transformer over frames.

Qwen3-Omni averages embeddings of the codes. Qwen3-TTS adds up codebook entries, as Mimi does, and
has a convolution and two projections around its transformer. This module must not know the rest of
the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi.config import MimiConfig
from duologue.codecs.mimi.quantizer import SplitQuantizer
from duologue.codecs.mimi.slots import Slots
from duologue.core.errors import ConfigError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code2wav.layers import CausalConvolution
from duologue.engines.models.decoder.config import DecoderConfig
from duologue.engines.models.decoder.stack import DecoderStack


class Front(Protocol):
    """What stands before the convolutions."""

    device: torch.device

    books: int
    """Codes of a frame."""

    def reset(self, slot: int) -> None:
        """Begin a new stream in a slot."""
        ...

    def __call__(self, codes: Tensor, slots: Sequence[int], starts: Sequence[int]) -> Tensor:
        """Take a step.

        Shapes:
            codes: [R, n, books] int64
            returns: [R, C, n]

        Args:
            starts: Frames of each stream before these.
        """
        ...


class EmbeddedCodes:
    """The mean of embeddings, through a transformer.

    Args:
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
        config, self.books, self._codes = _sizes(section)
        shape = (self.books * self._codes, config.dimension)
        self._table = folder.tensor(f"{name}.code_embedding.weight", *shape)
        self.device = self._table.device
        self._begins = torch.arange(0, shape[0], self._codes, device=self.device)
        self._transformer = _transformer(folder, name, config, slots, longest)

    def reset(self, slot: int) -> None:
        """Begin a new stream in a slot."""
        self._transformer.forget(slot)

    def __call__(self, codes: Tensor, slots: Sequence[int], starts: Sequence[int]) -> Tensor:
        """Take a step."""
        x = F.embedding(codes.clamp(0, self._codes - 1) + self._begins, self._table).mean(dim=2)
        return self._transformer.step(x, slots, starts).transpose(1, 2)


class QuantizedCodes:
    """The sum of codebook entries, through a convolution and a transformer between projections.

    Args:
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
        config, self.books, codes = _sizes(section)
        prefix = f"{name}." if name else ""
        # Of Mimi, whose layout this part of the checkpoint has, only these sizes matter here.
        mimi = MimiConfig(codebooks=self.books, stored_codebooks=self.books, codebook_size=codes)
        self._quantizer = SplitQuantizer.load(mimi, lambda each: folder.tensor(f"{prefix}{each}"))
        self._projections = [
            (
                folder.tensor(f"{prefix}pre_transformer.{side}_proj.weight"),
                folder.tensor(f"{prefix}pre_transformer.{side}_proj.bias"),
            )
            for side in ("input", "output")
        ]
        weight = self._projections[0][0]
        self.device = weight.device
        self._state = Slots(slots, device=weight.device, dtype=weight.dtype)
        self._convolution = CausalConvolution(folder, f"{prefix}pre_conv", self._state)
        self._transformer = _transformer(folder, name, config, slots, longest)

    def reset(self, slot: int) -> None:
        """Begin a new stream in a slot."""
        self._state.reset(slot)
        self._transformer.forget(slot)

    def __call__(self, codes: Tensor, slots: Sequence[int], starts: Sequence[int]) -> Tensor:
        """Take a step."""
        x = self._quantizer.decode(codes.transpose(1, 2)).transpose(1, 2)
        x = self._convolution(x, torch.tensor(slots, device=self.device), first=False)
        into, out = self._projections
        x = self._transformer.step(F.linear(x.transpose(1, 2), *into), slots, starts)
        return F.linear(x, *out).transpose(1, 2)


def _sizes(section: Mapping[str, Any]) -> tuple[DecoderConfig, int, int]:
    """Return the transformer, the books, and the codes of a book."""
    try:
        window = int(section["sliding_window"])
        sizes = int(section["num_quantizers"]), int(section["codebook_size"])
    except KeyError as exc:
        raise ConfigError(f"config.json does not say {exc.args[0]} of the codec") from exc
    return replace(DecoderConfig.read(section), window=window), *sizes


def _transformer(
    folder: CheckpointFolder, name: str, config: DecoderConfig, slots: int, longest: int
) -> DecoderStack:
    name = f"{name}.pre_transformer" if name else "pre_transformer"
    length = config.window + longest - 1 if config.window else config.positions
    return DecoderStack(folder, name, config, slots=slots, length=length)
