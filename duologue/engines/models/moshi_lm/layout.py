"""The tensors of a published checkpoint: their names and shapes. Needs no torch.

Two ways of writing the same weights are known. In the published files the attention of the depth
transformer is one tensor for all of its steps; the package ``moshi`` saves one for each step. A
file may have more steps than are used: those of PersonaPlex beyond the eighth would predict what
the person says, which is always replaced by what was heard.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from duologue.engines.models.moshi_lm.config import MoshiConfig

Shapes = dict[str, tuple[int, ...]]
"""Name in the file -> shape."""

_STEP_INPUT = re.compile(r"depformer_in\.(\d+)\.weight")
_PER_STEP = "depformer.layers.0.self_attn.in_projs.0.weight"


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is written.

    Args:
        attention: ``fused``: one tensor for all steps; ``per_step``: one for each.
        steps: How many the file has.
    """

    attention: Literal["fused", "per_step"]
    steps: int

    @classmethod
    def of(cls, names: Iterable[str]) -> Layout:
        """Tell from the names in a file. What is missing there, ``shapes`` will show."""
        names = set(names)
        steps = [int(found[1]) for name in names if (found := _STEP_INPUT.fullmatch(name))]
        attention: Literal["fused", "per_step"] = "per_step" if _PER_STEP in names else "fused"
        return cls(attention, 1 + max(steps, default=-1))

    def shapes(self, config: MoshiConfig) -> Shapes:
        """Return what such a file must hold, all of its steps included.

        Source:
            ``model.safetensors`` in ``nvidia/personaplex-7b-v1`` and in
            ``kyutai/moshiko-pytorch-bf16``; ``LMModel.state_dict()`` of moshi 0.2.13.
        """
        return {**self._temporal(config), **self._depth(config)}

    def in_proj(self, prefix: str, step: int | None = None) -> str:
        """Name of the weights that make queries, keys and values."""
        return f"{prefix}.self_attn.{self._attention('in_proj', step)}"

    def out_proj(self, prefix: str, step: int | None = None) -> str:
        """Name of the weights behind attention."""
        return f"{prefix}.self_attn.{self._attention('out_proj', step)}"

    def _attention(self, part: str, step: int | None) -> str:
        if self.attention == "per_step":
            return f"{part}s.{step or 0}.weight"
        return "in_proj_weight" if part == "in_proj" else "out_proj.weight"

    def _temporal(self, config: MoshiConfig) -> Shapes:
        size = config.dimension
        shapes: Shapes = {
            f"emb.{index}.weight": (config.audio_card + 1, size)
            for index in range(2 * config.codebooks)
        }
        shapes |= {
            "text_emb.weight": (config.text_card + 1, size),
            "text_linear.weight": (config.text_card, size),
            "out_norm.alpha": (1, 1, size),
        }
        for index in range(config.layers):
            layer = f"transformer.layers.{index}"
            shapes |= {
                self.in_proj(layer): (3 * size, size),
                self.out_proj(layer): (size, size),
                **_norms(layer, size),
                **_gating(f"{layer}.gating", size, config.hidden),
            }
        return shapes

    def _depth(self, config: MoshiConfig) -> Shapes:
        size, steps = config.depth_dimension, range(self.steps)
        shapes: Shapes = {"depformer_text_emb.weight": (config.text_card + 1, size)}
        shapes |= {f"depformer_in.{step}.weight": (size, config.dimension) for step in steps}
        shapes |= {
            f"depformer_emb.{step}.weight": (config.audio_card + 1, size) for step in steps[:-1]
        }
        shapes |= {f"linears.{step}.weight": (config.audio_card, size) for step in steps}
        for index in range(config.depth_layers):
            layer = f"depformer.layers.{index}"
            shapes |= _norms(layer, size)
            for step in steps:
                shapes |= _gating(f"{layer}.gating.{step}", size, config.depth_hidden)
            if self.attention == "fused":
                shapes[self.in_proj(layer)] = (self.steps * 3 * size, size)
                shapes[self.out_proj(layer)] = (self.steps * size, size)
                continue
            for step in steps:
                shapes[self.in_proj(layer, step)] = (3 * size, size)
                shapes[self.out_proj(layer, step)] = (size, size)
        return shapes


def _norms(layer: str, size: int) -> Shapes:
    return {f"{layer}.norm{number}.alpha": (1, 1, size) for number in (1, 2)}


def _gating(name: str, size: int, hidden: int) -> Shapes:
    return {
        f"{name}.linear_in.weight": (2 * hidden, size),
        f"{name}.linear_out.weight": (size, hidden),
    }
