"""Weights that are made, not stored: from one seed, tensor by tensor, in the order of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

SEED = 1
SCALE = 0.2


def make(shapes: Iterable[tuple[str, tuple[int, ...]]]) -> dict[str, Tensor]:
    """Draw all tensors; those of norms become ones."""
    generator = torch.Generator().manual_seed(SEED)
    tensors = {}
    for name, shape in shapes:
        noise = torch.randn(shape, generator=generator) * SCALE
        tensors[name] = torch.ones(shape) if "alpha" in name else noise
    return tensors


def sha256(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors.values():
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def write(path: Path, tensors: dict[str, Tensor], expected_sha256: str) -> None:
    """Write a checkpoint, sure that it is the one which was recorded."""
    assert sha256(tensors) == expected_sha256, "this torch draws other numbers than the golden's"
    save_file(tensors, path)
