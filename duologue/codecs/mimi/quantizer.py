"""Split residual vector quantization: latents to codes and back, without state.

The first codebook quantizes the latent by itself (it was trained to carry meaning); the others
quantize another projection of the same latent, each what its forerunners left over. Always in
float32: which entry is nearest must not depend on the precision of the rest.

Source:
    Moshi paper, section 3.3.2 (split RVQ); residual quantization as in SoundStream, section III-C
    of Zeghidour et al. (2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi.config import MimiConfig

_LEAST_USAGE = 1e-5
"""An entry that was never used in training has a usage of zero; its sum is divided by this."""


@dataclass(frozen=True, slots=True)
class ResidualQuantizer:
    """Codebooks in a row, between two projections.

    Shapes:
        into: [E, D]
        out: [D, E]
        entries: [K, N, E]
        half_norms: [K, N], half the squared length of each entry
    """

    into: Tensor
    out: Tensor
    entries: Tensor
    half_norms: Tensor

    @classmethod
    def load(cls, named: Callable[[str], Tensor], name: str, codebooks: int) -> ResidualQuantizer:
        """Look up as many codebooks as are used, under a prefix."""
        entries = torch.stack(
            [_entries(named, f"{name}.vq.layers.{index}._codebook") for index in range(codebooks)]
        )
        return cls(
            into=named(f"{name}.input_proj.weight").float()[:, :, 0].contiguous(),
            out=named(f"{name}.output_proj.weight").float()[:, :, 0].contiguous(),
            entries=entries,
            half_norms=entries.square().sum(2) / 2,
        )

    def encode(self, latent: Tensor) -> list[Tensor]:
        """Return the code of each codebook in turn.

        Shapes:
            latent: [S, T, D] float32
            returns: K times [S, T] int64
        """
        rest = F.linear(latent, self.into)
        codes = []
        for entries, half_norms in zip(self.entries, self.half_norms, strict=True):
            # |x - e|^2 is least where x.e - |e|^2 / 2 is greatest.
            code = (F.linear(rest, entries) - half_norms).argmax(dim=-1)
            rest = rest - F.embedding(code, entries)
            codes.append(code)
        return codes

    def decode(self, codes: Tensor) -> Tensor:
        """Return the latent that the codes stand for.

        Shapes:
            codes: [S, K, T] int64, each within its codebook
            returns: [S, T, D] float32
        """
        count, size, _ = self.entries.shape
        begins = torch.arange(0, count * size, size, device=codes.device)[:, None]
        chosen = F.embedding(codes + begins, self.entries.flatten(0, 1))  # [S, K, T, E]
        return F.linear(chosen.sum(1), self.out)


def _entries(named: Callable[[str], Tensor], name: str) -> Tensor:
    usage = named(f"{name}.cluster_usage").float().clamp(min=_LEAST_USAGE)
    return named(f"{name}.embedding_sum").float() / usage[:, None]


class SplitQuantizer:
    """The quantizer of meaning and that of sound, side by side."""

    __slots__ = ("_largest_code", "_parts")

    def __init__(self, parts: Sequence[ResidualQuantizer]) -> None:
        self._parts = tuple(parts)
        self._largest_code = parts[0].entries.shape[1] - 1

    @classmethod
    def load(cls, config: MimiConfig, named: Callable[[str], Tensor]) -> SplitQuantizer:
        """Look up the codebooks that the configuration uses."""
        return cls(
            (
                ResidualQuantizer.load(named, "quantizer.rvq_first", 1),
                ResidualQuantizer.load(named, "quantizer.rvq_rest", config.codebooks - 1),
            )
        )

    def encode(self, latent: Tensor) -> Tensor:
        """Return the codes, the one of meaning first.

        Shapes:
            latent: [S, T, D]
            returns: [S, K, T] int64
        """
        latent = latent.float()
        codes = [code for part in self._parts for code in part.encode(latent)]
        return torch.stack(codes, dim=1)

    def decode(self, codes: Tensor) -> Tensor:
        """Return the latent that the codes stand for.

        A code outside its codebook counts as the nearest one inside: a check would have to wait
        for the device, and an address out of bounds would end the process there.

        Shapes:
            codes: [S, K, T] int64
            returns: [S, T, D] float32
        """
        first, rest = self._parts
        codes = codes.clamp(0, self._largest_code)
        return first.decode(codes[:, :1]) + rest.decode(codes[:, 1:])
