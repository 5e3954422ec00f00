"""A checkpoint folder as transformers and others write it: configuration, and weights by name.

Weights lie in one safetensors file or in several with an index. Only what is asked for is read, so
a part of a large model costs what that part weighs. This module must not know any model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from duologue.core.errors import ConfigError

WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


class CheckpointFolder:
    """An open folder; to be used in a ``with``.

    Raises:
        ConfigError: It is no such folder, or something in it is broken.
    """

    def __init__(self, path: Path, device: str = "cpu", dtype: torch.dtype = torch.float32) -> None:
        self.path = path
        self.config: Mapping[str, Any] = _read_json(path / CONFIG, dict[str, Any])
        self._device = device
        self._dtype = dtype
        self._undo = ExitStack()
        self._files: dict[str, Any] = {}
        self._places = self._find()

    def __enter__(self) -> CheckpointFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None
    ) -> None:
        self._undo.close()

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def tensor(
        self, name: str, *shape: int, dtype: torch.dtype | None = None, device: str | None = None
    ) -> Tensor:
        """Read a tensor.

        Args:
            shape: What it must have; none: as it is.
            dtype, device: In place of the folder's.

        Raises:
            ConfigError: It is missing, or of another shape.
        """
        if name not in self._places:
            raise ConfigError(
                f"{self.path} has no weight {name}; it has {len(self._places)} others. "
                "It must be a whole checkpoint of this model."
            )
        try:
            found: Tensor = self._open(self._places[name]).get_tensor(name)
        except SafetensorError as exc:
            raise ConfigError(f"{self.path}: the weight {name} cannot be read: {exc}") from exc
        if shape and tuple(found.shape) != shape:
            raise ConfigError(
                f"{self.path}: {name} is {list(found.shape)}, must be {list(shape)} by {CONFIG}"
            )
        return found.to(device or self._device, dtype or self._dtype)

    def names(self, prefix: str) -> Sequence[str]:
        """Return the names of the weights under a prefix."""
        return [name for name in self._places if name.startswith(prefix)]

    def section(self, *names: str) -> Mapping[str, Any]:
        """Return a part of the configuration.

        Raises:
            ConfigError: There is none.
        """
        found: Any = self.config
        for name in names:
            if not isinstance(found, Mapping) or not isinstance(found.get(name), Mapping):
                raise ConfigError(f"{self.path / CONFIG} has no section {'.'.join(names)}")
            found = found[name]
        section: Mapping[str, Any] = found
        return section

    def _find(self) -> dict[str, str]:
        """Return the file of each weight."""
        index = self.path / INDEX
        if index.exists():
            found: dict[str, str] = _read_json(index, _Index).weight_map
            return found
        return dict.fromkeys(self._open(WEIGHTS).keys(), WEIGHTS)

    def _open(self, name: str) -> Any:
        if name not in self._files:
            try:
                self._files[name] = self._undo.enter_context(
                    safe_open(self.path / name, framework="pt")
                )
            except (OSError, SafetensorError) as exc:
                raise ConfigError(f"{self.path / name} cannot be read: {exc}") from exc
        return self._files[name]


def _read_json(path: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError) as exc:
        raise ConfigError(f"{path} cannot be read: {exc}") from exc
