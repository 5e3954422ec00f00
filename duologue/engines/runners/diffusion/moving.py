"""Weights from one memory to another in parts that are short, so that others can work in between.

This module must not know who else uses the device.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

import torch

PART_BYTES = 32 << 20
"""Of one part: some milliseconds from memory that is not pinned."""

Turn: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Makes what a part is done within."""


def move_in_parts(model: torch.nn.Module, device: torch.device, turn: Turn) -> None:
    """Move all weights and buffers; afterwards ``model.to(device)`` has nothing to do."""
    device = torch.empty(0, device=device).device  # where a name without a number means
    for module in model.modules():
        if _is_elsewhere(module, device):
            module._apply(lambda tensor: _moved(tensor, device, turn), recurse=False)


def _is_elsewhere(module: torch.nn.Module, device: torch.device) -> bool:
    own = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    return any(tensor.device != device for tensor in own)


def _moved(tensor: torch.Tensor, device: torch.device, turn: Turn) -> torch.Tensor:
    if tensor.device == device:
        return tensor  # as what models share is, the second time
    if tensor.nbytes <= PART_BYTES or not tensor.is_contiguous():
        with turn():
            return tensor.to(device)
    with turn():
        moved = torch.empty_like(tensor, device=device)
    copy_in_parts(tensor, moved, turn)
    return moved


def copy_in_parts(source: torch.Tensor, target: torch.Tensor, turn: Turn) -> None:
    """Copy a tensor into another one of its shape; both are contiguous."""
    read, written = source.view(-1), target.view(-1)
    length = PART_BYTES // source.element_size()
    for at in range(0, len(read), length):
        with turn():
            written[at : at + length].copy_(read[at : at + length])
