"""Causal layers that go on where the last step ended; each slot is a stream.

This module must not know how layers are put together.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi.slots import Slots
from duologue.engines.models.checkpoint_folder import CheckpointFolder

_NORM_EPSILON = 1e-6
_SNAKE_EPSILON = 1e-9


class Layer(Protocol):
    """One layer."""

    def __call__(self, x: Tensor, slots: Tensor, *, first: bool) -> Tensor:
        """Take a step.

        Shapes:
            x: [R, C, T]
            slots: [R] int64
            returns: [R, C', T']

        Args:
            first: It is the first of all rows' streams; else of none.
        """
        ...


class CausalConvolution:
    """A convolution over the present and the past; before a stream lie zeros."""

    def __init__(
        self, folder: CheckpointFolder, name: str, state: Slots, *, dilation: int = 1
    ) -> None:
        self._weight = folder.tensor(f"{name}.conv.weight")
        self._bias = folder.tensor(f"{name}.conv.bias", len(self._weight))
        self._dilation = dilation
        outputs, inputs, kernel = self._weight.shape
        # Depthwise ones, the only kind with groups here, have a group for each channel.
        self._groups = outputs if inputs == 1 and outputs > 1 else 1
        self._past_length = (kernel - 1) * dilation
        self._past = state.allocate((inputs * self._groups, self._past_length))

    def __call__(self, x: Tensor, slots: Tensor, *, first: bool) -> Tensor:
        """Take a step; as many outputs as inputs."""
        joined = torch.cat((self._past[slots], x), dim=2)
        if self._past_length:
            self._past[slots] = joined[:, :, -self._past_length :]
        return F.conv1d(
            joined, self._weight, self._bias, dilation=self._dilation, groups=self._groups
        )


class CausalUpsampling:
    """A transposed convolution. The first outputs of a stream, which lack a past, are left out."""

    def __init__(self, folder: CheckpointFolder, name: str, state: Slots, rate: int) -> None:
        self._weight = folder.tensor(f"{name}.conv.weight")
        outputs, kernel = self._weight.shape[1:]
        self._bias = folder.tensor(f"{name}.conv.bias", outputs)
        self._rate = rate
        self.left_out = kernel - rate
        # What the last inputs add to the outputs of the next step.
        self._overlap = state.allocate((outputs, self.left_out))

    def __call__(self, x: Tensor, slots: Tensor, *, first: bool) -> Tensor:
        """Take a step; ``rate`` outputs for each input, fewer at the beginning."""
        made = F.conv_transpose1d(x, self._weight, stride=self._rate)
        count = x.shape[2] * self._rate
        if self.left_out:
            made[:, :, : self.left_out] += self._overlap[slots]
            self._overlap[slots] = made[:, :, count:]
        start = self.left_out if first else 0
        return made[:, :, start:count] + self._bias[:, None]


class Snake:
    """x + sin(a x)^2 / b, channel by channel; a and b are stored as logarithms."""

    def __init__(self, folder: CheckpointFolder, name: str) -> None:
        self._frequency = folder.tensor(f"{name}.alpha").exp()[:, None]
        self._scale = 1 / (folder.tensor(f"{name}.beta").exp()[:, None] + _SNAKE_EPSILON)

    def __call__(self, x: Tensor, slots: Tensor, *, first: bool) -> Tensor:
        """Needs no past."""
        return x + self._scale * (x * self._frequency).sin().square()


class ConvNext:
    """A depthwise convolution and a feed-forward layer beside a shortcut."""

    def __init__(self, folder: CheckpointFolder, name: str, state: Slots) -> None:
        self._depthwise = CausalConvolution(folder, f"{name}.dwconv", state)
        self._norm = [folder.tensor(f"{name}.norm.{part}") for part in ("weight", "bias")]
        self._wide = [folder.tensor(f"{name}.pwconv1.{part}") for part in ("weight", "bias")]
        self._narrow = [folder.tensor(f"{name}.pwconv2.{part}") for part in ("weight", "bias")]
        self._scale = folder.tensor(f"{name}.gamma")

    def __call__(self, x: Tensor, slots: Tensor, *, first: bool) -> Tensor:
        """Take a step; as many outputs as inputs."""
        made = self._depthwise(x, slots, first=first).transpose(1, 2)
        made = F.layer_norm(made, made.shape[-1:], *self._norm, eps=_NORM_EPSILON)
        made = F.linear(F.gelu(F.linear(made, *self._wide)), *self._narrow)
        return x + (self._scale * made).transpose(1, 2)


class Residual:
    """Two convolutions with their activations beside a shortcut."""

    def __init__(self, folder: CheckpointFolder, name: str, state: Slots, dilation: int) -> None:
        self._layers: tuple[Layer, ...] = (
            Snake(folder, f"{name}.act1"),
            CausalConvolution(folder, f"{name}.conv1", state, dilation=dilation),
            Snake(folder, f"{name}.act2"),
            CausalConvolution(folder, f"{name}.conv2", state),
        )

    def __call__(self, x: Tensor, slots: Tensor, *, first: bool) -> Tensor:
        """Take a step; as many outputs as inputs."""
        made = x
        for layer in self._layers:
            made = layer(made, slots, first=first)
        return x + made
