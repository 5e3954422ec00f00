"""Causal convolutions that go on where the last step ended.

Everything is channels-last, and every convolution is one matrix product over windows of the input:
[B, T, C] seen as [B, T / stride, kernel * C]. A transposed convolution whose kernel is twice its
stride, the only kind here, is the same thing: each input makes ``stride`` outputs out of itself and
the input before it. So all state is the last few inputs, and zeros are the beginning of a stream.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi.slots import Slots
from duologue.kernels.stream_windows import stream_windows


@dataclass(frozen=True, slots=True)
class Convolution:
    """Weights, as a matrix over windows.

    Shapes:
        matrix: [up * C_out, kernel * C_in]; a row is one output channel, of each of ``up`` outputs
        bias: [up * C_out]
    """

    matrix: Tensor
    bias: Tensor | None
    kernel: int
    stride: int = 1
    up: int = 1

    @classmethod
    def plain(cls, weight: Tensor, bias: Tensor | None = None, *, stride: int = 1) -> Convolution:
        """Take over the weights of a convolution.

        Shapes:
            weight: [C_out, C_in, kernel]
            bias: [C_out]
        """
        matrix = weight.transpose(1, 2).flatten(1).contiguous()
        return cls(matrix, bias, kernel=weight.shape[2], stride=stride)

    @classmethod
    def transposed(cls, weight: Tensor, bias: Tensor) -> Convolution:
        """Take over the weights of a transposed convolution that raises the rate by half a kernel.

        Shapes:
            weight: [C_in, C_out, 2 * up]
            bias: [C_out]
        """
        up = weight.shape[2] // 2
        now, before = weight.permute(2, 1, 0).chunk(2)  # [up, C_out, C_in] each
        matrix = torch.cat((before, now), dim=2).flatten(0, 1).contiguous()
        return cls(matrix, bias.repeat(up), kernel=2, up=up)

    def stream(self, slots: Slots) -> ConvolutionStream:
        """Begin streams of this convolution in all slots."""
        return ConvolutionStream(self, slots)


class ConvolutionStream:
    """A convolution with what each slot still needs of its past."""

    __slots__ = ("_past", "_weights")

    def __init__(self, weights: Convolution, slots: Slots) -> None:
        channels = weights.matrix.shape[1] // weights.kernel
        self._weights = weights
        self._past = slots.allocate((weights.kernel - weights.stride, channels))

    def __call__(
        self,
        x: Tensor,
        slots: Tensor,
        *,
        activated: bool = False,
        first: Tensor | None = None,
    ) -> Tensor:
        """Take one step.

        Shapes:
            x: [R, T, C_in], T a multiple of the stride
            slots: [R] int64
            first: [R] bool, the rows at their beginning, where the past repeats the first input;
                None where the past is silence
            returns: [R, T / stride * up, C_out]

        Args:
            activated: The input passes an ELU first.
        """
        weights = self._weights
        windows = stream_windows(
            x,
            self._past,
            slots,
            kernel=weights.kernel,
            stride=weights.stride,
            activated=activated,
            first=first,
        )
        rows, steps, _ = windows.shape
        return F.linear(windows, weights.matrix, weights.bias).reshape(rows, steps * weights.up, -1)


@dataclass(frozen=True, slots=True)
class DepthwiseUpsampling:
    """A transposed convolution of each channel by itself, without bias.

    Shapes:
        now, before: [up, C], what an input adds to its own outputs, and to those of the next one
    """

    now: Tensor
    before: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> DepthwiseUpsampling:
        """Take over the weights of a grouped convolution.

        Shapes:
            weight: [C, 1, 2 * up]
        """
        now, before = weight[:, 0].t().contiguous().chunk(2)
        return cls(now, before)

    def stream(self, slots: Slots) -> UpsamplingStream:
        """Begin streams in all slots."""
        return UpsamplingStream(self, slots)


class UpsamplingStream:
    """Upsampling with the last input of each slot."""

    __slots__ = ("_past", "_weights")

    def __init__(self, weights: DepthwiseUpsampling, slots: Slots) -> None:
        self._weights = weights
        self._past = slots.allocate((1, weights.now.shape[1]))

    def __call__(self, x: Tensor, slots: Tensor) -> Tensor:
        """Take one step.

        Shapes:
            x: [R, T, C]
            slots: [R] int64
            returns: [R, T * up, C]
        """
        rows, length, channels = x.shape
        windows = stream_windows(x, self._past, slots, kernel=2).view(rows, length, 2, 1, channels)
        out = windows[:, :, 1] * self._weights.now + windows[:, :, 0] * self._weights.before
        return out.flatten(1, 2)
