"""Reading checkpoints in the published layout, and making small ones with random weights.

A file is checked before any weight is read: names, shapes and types of all its tensors. Codebooks
that the configuration does not use are never read.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from duologue.codecs.mimi.config import MimiConfig
from duologue.codecs.mimi.layout import Shapes, checkpoint_shapes
from duologue.core.errors import ConfigError

_FLOATS = ("F32", "F16", "BF16")
_SHOWN = 3
"""How many wrong tensors a message names; the rest it counts."""

_REST_CODEBOOK = re.compile(r"quantizer\.rvq_rest\.vq\.layers\.(\d+)\.")


class _Slice(Protocol):
    def get_shape(self) -> list[int]: ...

    def get_dtype(self) -> str: ...


class _Stored(Protocol):
    """What is read of an open file before its weights; the library declares no types."""

    def keys(self) -> list[str]: ...

    def get_slice(self, name: str) -> _Slice: ...


def load_tensors(path: Path, config: MimiConfig, device: str = "cpu") -> dict[str, Tensor]:
    """Read the tensors that a configuration uses, as float32.

    Raises:
        ConfigError: The file cannot be read, or does not fit the configuration; says which
            tensors are missing, unknown, or of another shape.
    """
    try:
        with safe_open(path, framework="pt", device=device) as file:
            _check(file, path, checkpoint_shapes(config))
            names = [name for name in checkpoint_shapes(config) if _is_used(name, config)]
            return {name: file.get_tensor(name).float() for name in names}
    except (OSError, SafetensorError) as error:
        raise ConfigError(
            f"cannot read the Mimi checkpoint {path}: {error}."
            " It must be a whole file in safetensors format; fetch it again."
        ) from error


def _is_used(name: str, config: MimiConfig) -> bool:
    codebook = _REST_CODEBOOK.match(name)
    return codebook is None or int(codebook[1]) < config.codebooks - 1


def _check(file: _Stored, path: Path, wanted: Shapes) -> None:
    names = set(file.keys())
    problems = [f"{name} is missing" for name in wanted if name not in names]
    problems += [f"{name} is unknown" for name in sorted(names - wanted.keys())]
    for name, shape in wanted.items():
        if name not in names:
            continue
        found = file.get_slice(name)
        if tuple(found.get_shape()) != shape:
            problems.append(f"{name} is {found.get_shape()}, must be {list(shape)}")
        elif found.get_dtype() not in _FLOATS:
            problems.append(f"{name} is of type {found.get_dtype()}, must be one of {_FLOATS}")
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise ConfigError(
            f"{path} is no Mimi checkpoint of this configuration:"
            f" {'; '.join(problems[:_SHOWN])}{more}."
            " Use the file that belongs to the model, or set the sizes that this file has.",
            details={"path": str(path), "problems": len(problems)},
        )


def save_random(path: Path, config: MimiConfig, seed: int) -> None:
    """Write a checkpoint whose weights are noise, of a size that keeps signals alive.

    What it decodes to is noise as well. It is for tests and demonstrations of the machinery.
    """
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        name: _random(name, shape, generator) for name, shape in checkpoint_shapes(config).items()
    }
    save_file(tensors, path)


def _random(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    noise = torch.randn(shape, generator=generator)
    if name.endswith("_initialized"):
        return torch.ones(shape)
    if name.endswith("cluster_usage"):
        return 1 + noise.abs()
    if name.endswith(".scale"):
        return 0.3 + 0.1 * noise
    if ".norm" in name:
        return 0.1 * noise + (1.0 if name.endswith(".weight") else 0.0)
    if name.endswith(".bias"):
        return 0.1 * noise
    if name.endswith("embedding_sum"):
        return 2 * noise
    # A transposed convolution sums over its first dimension and two of its taps.
    inputs = 2 * shape[0] if ".convtr." in name and shape[1] > 1 else math.prod(shape[1:])
    return noise * math.sqrt(2 / inputs)
