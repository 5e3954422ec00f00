"""SEANet: the convolutions between samples and the 25 Hz of the transformers.

Source:
    Tagliasacchi et al., "SEANet: a multi-modal speech enhancement network" (2020); the causal form
    with residual blocks is that of Encodec, section 3.1 of Défossez et al. (2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from duologue.codecs.mimi.config import MimiConfig
from duologue.codecs.mimi.convolution import Convolution, ConvolutionStream
from duologue.codecs.mimi.slots import Slots

Named = Callable[[str], Tensor]
"""Looks a tensor up by its name in the checkpoint."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One convolution of the chain, or a pair of them beside a shortcut."""

    convolutions: tuple[Convolution, ...]
    activated: bool = True
    """Whether the input passes an ELU first."""

    @property
    def residual(self) -> bool:
        """Whether the input is added to the output."""
        return len(self.convolutions) > 1


def encoder_stages(config: MimiConfig, named: Named) -> tuple[Stage, ...]:
    """Samples [S, T, 1] to latents [S, T / hop, dimension]."""
    stages = [Stage((_plain(named, "encoder.model.0"),), activated=False)]
    for index, ratio in enumerate(reversed(config.ratios)):
        stages += [
            _residual(named, f"encoder.model.{1 + 3 * index}"),
            Stage((_plain(named, f"encoder.model.{3 + 3 * index}", stride=ratio),)),
        ]
    last = 2 + 3 * len(config.ratios)
    return (*stages, Stage((_plain(named, f"encoder.model.{last}"),)))


def decoder_stages(config: MimiConfig, named: Named) -> tuple[Stage, ...]:
    """Latents [S, T, dimension] to samples [S, T * hop, 1]."""
    stages = [Stage((_plain(named, "decoder.model.0"),), activated=False)]
    for index in range(len(config.ratios)):
        name = f"decoder.model.{2 + 3 * index}.convtr.convtr"
        raised = Convolution.transposed(named(f"{name}.weight"), named(f"{name}.bias"))
        stages += [Stage((raised,)), _residual(named, f"decoder.model.{3 + 3 * index}")]
    last = 2 + 3 * len(config.ratios)
    return (*stages, Stage((_plain(named, f"decoder.model.{last}"),)))


def _plain(named: Named, name: str, *, stride: int = 1) -> Convolution:
    name = f"{name}.conv.conv"
    return Convolution.plain(named(f"{name}.weight"), named(f"{name}.bias"), stride=stride)


def _residual(named: Named, name: str) -> Stage:
    return Stage((_plain(named, f"{name}.block.1"), _plain(named, f"{name}.block.3")))


class SeanetStream:
    """A chain of stages with their state in all slots."""

    __slots__ = ("_stages",)

    def __init__(self, stages: Sequence[Stage], slots: Slots) -> None:
        self._stages: list[tuple[Stage, list[ConvolutionStream]]] = [
            (stage, [each.stream(slots) for each in stage.convolutions]) for stage in stages
        ]

    def __call__(self, x: Tensor, slots: Tensor) -> Tensor:
        """Take one step.

        Shapes:
            x: [R, T, C]
            slots: [R] int64
            returns: [R, T', C']
        """
        for stage, convolutions in self._stages:
            shortcut = x
            for convolution in convolutions:
                x = convolution(x, slots, activated=stage.activated)
            if stage.residual:
                x = x + shortcut
        return x
