"""Reading checkpoints in the published layouts.

A file is checked before any weight is read: names, shapes and types of all its tensors. Steps of
the depth transformer that are not used are never read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from duologue.core.errors import ConfigError
from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.layout import Layout, Shapes
from duologue.engines.models.moshi_lm.weights import (
    DepthLayer,
    DepthWeights,
    MoshiWeights,
    TemporalLayer,
)

Progress = Callable[[int, int], None]
"""Is told how many weights were read, and of how many."""

_FLOATS = ("F32", "F16", "BF16")
_SHOWN = 3
"""How many wrong tensors a message names; the rest it counts."""


class _Slice(Protocol):
    def get_shape(self) -> list[int]: ...

    def get_dtype(self) -> str: ...

    def __getitem__(self, rows: slice) -> Tensor: ...


class _Stored(Protocol):
    """What is read of an open file; the library declares no types."""

    def keys(self) -> list[str]: ...

    def get_slice(self, name: str) -> _Slice: ...

    def get_tensor(self, name: str) -> Tensor: ...


def load_weights(
    path: Path,
    config: MoshiConfig,
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.bfloat16,
    progress: Progress | None = None,
) -> MoshiWeights:
    """Read the weights that a configuration uses.

    Args:
        dtype: Of all weights but those of the norms, which are float32.
        progress: Called after each tensor.

    Raises:
        ConfigError: The file cannot be read, or does not fit the configuration; says which
            tensors are missing, unknown, or of another shape.
    """
    try:
        with safe_open(path, framework="pt", device=device) as file:
            layout = Layout.of(file.keys())
            _check(file, path, config, layout)
            return _Reader(file, config, layout, dtype, progress).read()
    except (OSError, SafetensorError) as error:
        raise ConfigError(
            f"cannot read the checkpoint {path}: {error}."
            " It must be a whole file in safetensors format; fetch it again."
        ) from error


def _check(file: _Stored, path: Path, config: MoshiConfig, layout: Layout) -> None:
    if layout.steps < config.codebooks:
        raise ConfigError(
            f"{path} has {layout.steps} steps of a depth transformer (depformer_in.*), and"
            f" {config.codebooks} are needed. Use the file of the language model.",
            details={"path": str(path), "steps": layout.steps},
        )
    problems = _problems(file, layout.shapes(config))
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise ConfigError(
            f"{path} is no checkpoint of this model: {'; '.join(problems[:_SHOWN])}{more}."
            " Use the file that belongs to the model, or set the sizes that this file has.",
            details={"path": str(path), "problems": len(problems)},
        )


def _problems(file: _Stored, wanted: Shapes) -> list[str]:
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
    return problems


class _Reader:
    """Reads one open file, and tells how far it is."""

    def __init__(
        self,
        file: _Stored,
        config: MoshiConfig,
        layout: Layout,
        dtype: torch.dtype,
        progress: Progress | None,
    ) -> None:
        self._file = file
        self._config = config
        self._layout = layout
        self._dtype = dtype
        self._progress = progress
        self._read = 0
        used = Layout(layout.attention, config.codebooks).shapes(config)
        self._total = sum(math.prod(shape) for shape in used.values())

    def read(self) -> MoshiWeights:
        config = self._config
        names = ["text_emb.weight", *(f"emb.{n}.weight" for n in range(2 * config.codebooks))]
        sizes = [config.text_card + 1, *[config.audio_card + 1] * (2 * config.codebooks)]
        begins = [0, *accumulate(sizes[:-1])]
        embeddings = self._join(names, sizes)
        return MoshiWeights(
            embeddings=embeddings,
            begins=torch.tensor(begins, dtype=torch.int32, device=embeddings.device),
            layers=tuple(self._temporal_layer(index) for index in range(config.layers)),
            out_norm=self._norm("out_norm.alpha"),
            text_head=self._tensor("text_linear.weight"),
            depth=self._depth(),
        )

    def _temporal_layer(self, index: int) -> TemporalLayer:
        name = f"transformer.layers.{index}"
        return TemporalLayer(
            norm1=self._norm(f"{name}.norm1.alpha"),
            in_proj=self._tensor(self._layout.in_proj(name)),
            out_proj=self._tensor(self._layout.out_proj(name)),
            norm2=self._norm(f"{name}.norm2.alpha"),
            gate_up=self._tensor(f"{name}.gating.linear_in.weight"),
            down=self._tensor(f"{name}.gating.linear_out.weight"),
        )

    def _depth(self) -> DepthWeights:
        steps = range(self._config.codebooks)
        return DepthWeights(
            input=self._stack([f"depformer_in.{step}.weight" for step in steps]).flatten(0, 1),
            text_embedding=self._tensor("depformer_text_emb.weight"),
            code_embeddings=self._stack([f"depformer_emb.{step}.weight" for step in steps[:-1]]),
            layers=tuple(self._depth_layer(index) for index in range(self._config.depth_layers)),
            heads=self._stack([f"linears.{step}.weight" for step in steps]),
        )

    def _depth_layer(self, index: int) -> DepthLayer:
        name, steps = f"depformer.layers.{index}", range(self._config.codebooks)
        gating = f"{name}.gating"
        return DepthLayer(
            norm1=self._norm(f"{name}.norm1.alpha"),
            in_proj=self._steps([self._layout.in_proj(name, step) for step in steps]),
            out_proj=self._steps([self._layout.out_proj(name, step) for step in steps]),
            norm2=self._norm(f"{name}.norm2.alpha"),
            gate_up=self._stack([f"{gating}.{step}.linear_in.weight" for step in steps]),
            down=self._stack([f"{gating}.{step}.linear_out.weight" for step in steps]),
        )

    def _tensor(self, name: str) -> Tensor:
        return self._took(self._file.get_tensor(name)).to(self._dtype)

    def _norm(self, name: str) -> Tensor:
        return self._took(self._file.get_tensor(name)).float().flatten()

    def _join(self, names: Sequence[str], rows: Sequence[int]) -> Tensor:
        """Read tables one below the other."""
        first = self._tensor(names[0])
        joined = first.new_empty((sum(rows), first.shape[1]))
        for part, name in zip(joined.split(list(rows)), names, strict=True):
            part.copy_(first if name == names[0] else self._tensor(name))
        return joined

    def _stack(self, names: Sequence[str]) -> Tensor:
        """Read one tensor after the other into its place: never are there two copies of all."""
        first = self._tensor(names[0])
        stacked = first.new_empty((len(names), *first.shape))
        stacked[0] = first
        for index, name in enumerate(names[1:], 1):
            stacked[index] = self._tensor(name)
        return stacked

    def _steps(self, names: Sequence[str]) -> Tensor:
        """Read the attention weights of the steps that are used, of either layout."""
        if self._layout.attention == "per_step":
            return self._stack(names)
        stored = self._file.get_slice(names[0])
        rows, columns = stored.get_shape()
        each = rows // self._layout.steps
        used = self._took(stored[: len(names) * each])
        # A copy, because the slice would hold on to the whole.
        return used.to(self._dtype, copy=True).view(len(names), each, columns)

    def _took(self, tensor: Tensor) -> Tensor:
        self._read += tensor.numel()
        if self._progress is not None:
            self._progress(self._read, self._total)
        return tensor
