"""The memory of many streams: tensors of fixed size, whose first dimension is the slot.

Behind the last slot is one more, which belongs to nobody: rows of a step that stand for no stream
read and write there. This module must not know what the tensors mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one slot held at one moment; a copy, which later steps do not change."""

    tensors: tuple[Tensor, ...]


class Slots:
    """Hands out the state of each layer, and treats all of it as one for a given slot.

    Concurrency:
        The tensors keep their addresses for life, so a CUDA graph may hold them. ``reset``,
        ``snapshot`` and ``restore`` are for between two steps, on the stream of the steps.
    """

    __slots__ = ("_tensors", "count", "device", "dtype")

    def __init__(self, count: int, *, device: torch.device, dtype: torch.dtype) -> None:
        if count < 1:
            raise ValueError(f"{count} slots: at least one is needed")
        self.count = count
        self.device = device
        self.dtype = dtype
        self._tensors: list[Tensor] = []

    def allocate(self, shape: Sequence[int], dtype: torch.dtype | None = None) -> Tensor:
        """Return zeros, one block of ``shape`` for each slot and one for nobody.

        Shapes:
            returns: [slots + 1, *shape]
        """
        size = (self.count + 1, *shape)
        tensor = torch.zeros(size, device=self.device, dtype=dtype or self.dtype)
        self._tensors.append(tensor)
        return tensor

    def rows(self, active: Tensor) -> Tensor:
        """Return the slot of each row of a step that has one for every slot.

        Shapes:
            active: [slots] bool
            returns: [slots] int64, nobody's where not active
        """
        every = torch.arange(self.count, device=active.device)
        return torch.where(active, every, self.count)

    def reset(self, slot: int) -> None:
        """Begin a new stream in a slot. What was there, not-a-numbers included, is gone."""
        self._check(slot)
        for tensor in self._tensors:
            tensor[slot].zero_()

    def reset_rows(self, slots: Tensor) -> None:
        """As ``reset``, where the numbers of the slots are on the device.

        Shapes:
            slots: [n] int64
        """
        for tensor in self._tensors:
            tensor.index_fill_(0, slots, 0)

    def snapshot(self, slot: int) -> Snapshot:
        """Copy what a slot holds."""
        self._check(slot)
        return Snapshot(tuple(tensor[slot].clone() for tensor in self._tensors))

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        """Go on from a snapshot, of this slot or another, of these streams or equal ones.

        Raises:
            ValueError: It is from streams of another shape. Nothing was changed.
        """
        self._check(slot)
        mine = [(each.shape[1:], each.dtype) for each in self._tensors]
        if mine != [(each.shape, each.dtype) for each in snapshot.tensors]:
            raise ValueError("the snapshot is from streams of another shape")
        for tensor, saved in zip(self._tensors, snapshot.tensors, strict=True):
            tensor[slot].copy_(saved)

    def _check(self, slot: int) -> None:
        if not 0 <= slot < self.count:
            raise IndexError(f"slot {slot} of {self.count}")
