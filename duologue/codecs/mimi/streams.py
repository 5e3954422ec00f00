"""Encoding and decoding frame by frame, for many streams in one batch.

A step has no branch on data, reads and writes state at fixed addresses, and waits for nothing, so a
CUDA graph can hold it. Slots share weights and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from duologue.codecs.mimi.config import MimiConfig
from duologue.codecs.mimi.convolution import Convolution, DepthwiseUpsampling
from duologue.codecs.mimi.quantizer import SplitQuantizer
from duologue.codecs.mimi.seanet import SeanetStream, Stage
from duologue.codecs.mimi.slots import Slots, Snapshot
from duologue.codecs.mimi.transformer import TransformerLayer, TransformerStream


@dataclass(frozen=True, slots=True)
class EncoderWeights:
    """Samples to codes, in the order of the fields."""

    config: MimiConfig
    stages: tuple[Stage, ...]
    layers: tuple[TransformerLayer, ...]
    downsampling: Convolution
    quantizer: SplitQuantizer


@dataclass(frozen=True, slots=True)
class DecoderWeights:
    """Codes to samples: the quantizer, the upsampling, the layers, the stages."""

    config: MimiConfig
    stages: tuple[Stage, ...]
    layers: tuple[TransformerLayer, ...]
    upsampling: DepthwiseUpsampling
    quantizer: SplitQuantizer


class _Stream:
    """What both directions have in common: slots, and the most frames of one step."""

    __slots__ = ("_config", "_max_frames", "_slots", "_transformer")

    def __init__(
        self,
        config: MimiConfig,
        layers: tuple[TransformerLayer, ...],
        slots: int,
        max_frames: int,
    ) -> None:
        if max_frames < 1:
            raise ValueError(f"max_frames is {max_frames}: a step is at least one frame")
        weight = layers[0].in_proj
        self._config = config
        self._max_frames = max_frames
        self._slots = Slots(slots, device=weight.device, dtype=weight.dtype)
        self._transformer = TransformerStream(config, layers, self._slots, max_frames)

    def reset(self, slot: int) -> None:
        """Begin a new stream in a slot."""
        self._slots.reset(slot)

    def reset_rows(self, slots: Tensor) -> None:
        """As ``reset``; a CUDA graph may hold it.

        Shapes:
            slots: [n] int64
        """
        self._slots.reset_rows(slots)

    def snapshot(self, slot: int) -> Snapshot:
        """Copy what a slot holds."""
        return self._slots.snapshot(slot)

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        """Go on from a snapshot, which may come from another slot.

        Raises:
            ValueError: It is from streams of another shape.
        """
        self._slots.restore(slot, snapshot)

    def _rows(self, active: Tensor) -> Tensor:
        count = self._slots.count
        if active.shape != (count,) or active.dtype != torch.bool:
            raise ValueError(
                f"active is {list(active.shape)} {active.dtype}, must be [{count}] torch.bool"
            )
        return self._slots.rows(active)

    def _check(self, given: tuple[int, ...], inner: tuple[int, ...], slots: Tensor) -> None:
        """Refuse a step that is not [R, *inner, n] with n up to ``max_frames`` of the last size."""
        *middle, unit = inner
        largest = unit * self._max_frames
        wanted = (len(slots), *middle)
        if given[:-1] != wanted or not 0 < given[-1] <= largest or given[-1] % unit:
            raise ValueError(
                f"the step is {list(given)}, must be [{', '.join(map(str, wanted))}, n],"
                f" n a multiple of {unit} up to {largest}"
            )


class EncoderStream(_Stream):
    """Encodes streams of samples."""

    __slots__ = ("_convolutions", "_downsampling", "_weights")

    def __init__(self, weights: EncoderWeights, slots: int, max_frames: int) -> None:
        super().__init__(weights.config, weights.layers, slots, max_frames)
        self._weights = weights
        self._convolutions = SeanetStream(weights.stages, self._slots)
        self._downsampling = weights.downsampling.stream(self._slots)

    def step(self, pcm: Tensor, active: Tensor) -> Tensor:
        """Encode the next frames of the slots that take part; the others stay as they are.

        Shapes:
            pcm: [S, n * frame_samples], from -1 to 1
            active: [S] bool
            returns: [S, codebooks, n] int64, zeros where not active

        Raises:
            ValueError: Not whole frames of all slots, or more than ``max_frames``.
        """
        return self.step_rows(pcm, self._rows(active)) * active.view(-1, 1, 1)

    def step_rows(self, pcm: Tensor, slots: Tensor) -> Tensor:
        """Encode the next frames of some slots, in any order.

        Shapes:
            pcm: [R, n * frame_samples]
            slots: [R] int64, each slot once; the number of slots stands for none
            returns: [R, codebooks, n] int64

        Raises:
            ValueError: Not whole frames of all rows, or more than ``max_frames``.
        """
        self._check(tuple(pcm.shape), (self._config.frame_samples,), slots)
        first = self._transformer.position[slots] == 0
        latent = self._convolutions(pcm.to(self._slots.dtype)[:, :, None], slots)
        latent = self._transformer(latent, slots)
        latent = self._downsampling(latent, slots, first=first)
        return self._weights.quantizer.encode(latent)


class DecoderStream(_Stream):
    """Decodes streams of codes."""

    __slots__ = ("_convolutions", "_upsampling", "_weights")

    def __init__(self, weights: DecoderWeights, slots: int, max_frames: int) -> None:
        super().__init__(weights.config, weights.layers, slots, max_frames)
        self._weights = weights
        self._convolutions = SeanetStream(weights.stages, self._slots)
        self._upsampling = weights.upsampling.stream(self._slots)

    def step(self, codes: Tensor, active: Tensor) -> Tensor:
        """Decode the next frames of the slots that take part; the others stay as they are.

        Shapes:
            codes: [S, codebooks, n] int64
            active: [S] bool
            returns: [S, n * frame_samples] float32, zeros where not active

        Raises:
            ValueError: Not all codebooks of all slots, or more than ``max_frames``.
        """
        pcm = self.step_rows(codes, self._rows(active))
        return torch.where(active[:, None], pcm, torch.zeros_like(pcm))

    def step_rows(self, codes: Tensor, slots: Tensor) -> Tensor:
        """Decode the next frames of some slots, in any order.

        Shapes:
            codes: [R, codebooks, n] int64
            slots: [R] int64, each slot once; the number of slots stands for none
            returns: [R, n * frame_samples] float32

        Raises:
            ValueError: Not all codebooks of all rows, or more than ``max_frames``.
        """
        self._check(tuple(codes.shape), (self._config.codebooks, 1), slots)
        latent = self._weights.quantizer.decode(codes).to(self._slots.dtype)
        latent = self._transformer(self._upsampling(latent, slots), slots)
        return self._convolutions(latent, slots)[:, :, 0].float()
