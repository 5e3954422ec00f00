"""Reads the weights of a safetensors file into NumPy, each checked against the shape it must have.

NumPy alone is enough for a policy on the CPU, and the format is small: the length of a header, the
header in JSON, the bytes. This module must not know any model.

Source:
    https://github.com/huggingface/safetensors, section "Format".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from duologue.core.errors import ConfigError

Weights: TypeAlias = Mapping[str, npt.NDArray[np.float32]]
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]

_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100 << 20
_ITEM_BYTES: Mapping[str, int] = {"F32": 4, "F16": 2, "BF16": 2}


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def read_weights(path: Path, shapes: Shapes) -> Weights:
    """Return all weights as float32.

    Args:
        shapes: The names that there must be, and no others.

    Raises:
        ConfigError: The file is broken, or a weight is missing, unknown or of another shape.
    """
    try:
        with path.open("rb") as file:
            entries = _entries(path, file)
            data = np.memmap(path, np.uint8, "r", offset=file.tell())
    except (OSError, ValueError) as exc:
        raise ConfigError(f"{path} cannot be read: {exc}") from exc
    if missing := sorted(shapes.keys() - entries.keys()):
        raise ConfigError(f"{path} lacks {len(missing)} weights, as {missing[0]}")
    if unknown := sorted(entries.keys() - shapes.keys()):
        raise ConfigError(f"{path} has {len(unknown)} weights that nobody reads, as {unknown[0]}")
    return {name: _weight(path, name, entries[name], shape, data) for name, shape in shapes.items()}


def _entries(path: Path, file: BinaryIO) -> Mapping[str, _Entry]:
    length = file.read(_LENGTH_BYTES)
    count = int.from_bytes(length, "little")
    left = path.stat().st_size - _LENGTH_BYTES
    if len(length) < _LENGTH_BYTES or count > min(left, _MAX_HEADER_BYTES):
        raise ConfigError(f"{path} is no whole safetensors file: its header does not fit into it")
    try:
        raw = msgspec.json.decode(file.read(count), type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        return {name: msgspec.json.decode(each, type=_Entry) for name, each in raw.items()}
    except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path} is no safetensors file: {exc}") from exc


def _weight(
    path: Path, name: str, entry: _Entry, shape: tuple[int, ...], data: npt.NDArray[np.uint8]
) -> npt.NDArray[np.float32]:
    if entry.shape != shape:
        raise ConfigError(
            f"{path}: {name} has the shape {list(entry.shape)}, and by config.json it must be "
            f"{list(shape)}"
        )
    item_bytes = _ITEM_BYTES.get(entry.dtype)
    if item_bytes is None:
        raise ConfigError(f"{path}: {name} is {entry.dtype}; read are {', '.join(_ITEM_BYTES)}")
    begin, end = entry.data_offsets
    if not 0 <= begin <= end <= len(data) or end - begin != item_bytes * int(np.prod(shape)):
        raise ConfigError(f"{path}: the bytes of {name} are not all there; fetch the file again")
    raw = data[begin:end]
    if entry.dtype == "BF16":  # the upper half of a float32
        values = (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        values = raw.view("<f4" if entry.dtype == "F32" else "<f2").astype(np.float32)
    return values.reshape(shape)
