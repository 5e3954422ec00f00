"""Embeddings of prompts, kept: whoever asks again with the same words waits for no text encoder.

This module must not know pipelines.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch

from duologue.engines.runners.diffusion.tensor_store import TensorStore


class PromptCache:
    """The newest results of text encoders, within a bound of bytes.

    Args:
        max_bytes: Of all tensors that are kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept = TensorStore(max_bytes)
        self.hits = 0
        self.misses = 0

    @property
    def bytes(self) -> int:
        """What is kept."""
        return self._kept.bytes

    def through(self, encode: Callable[..., Any], context: Callable[[], Hashable]) -> Any:
        """Return ``encode`` with a memory.

        Args:
            context: What else the result depends on, as the adapters in use. ``None`` in it is a
                value like any other.
        """

        def remembered(*args: Any, **kwargs: Any) -> Any:
            key = _key(args, kwargs)
            if key is None:
                return encode(*args, **kwargs)
            return self._get((encode, context(), key), lambda: encode(*args, **kwargs))

        return remembered

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()

    def _get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        found = self._kept.get(key)
        if found is not None:
            self.hits += 1
            return found
        self.misses += 1
        result = make()
        self._kept.put(key, result)
        return result


def _key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable | None:
    """Return the arguments as a key; ``None`` where one of them is more than a plain value."""
    parts: list[Hashable] = []
    for name, value in (*enumerate(args), *sorted(kwargs.items())):
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            value = tuple(value)
        if not isinstance(
            value, str | int | float | bool | tuple | torch.device | torch.dtype | None
        ):
            return None
        parts.append((name, value))
    return tuple(parts)
