"""Embeddings of prompts, kept: whoever asks again with the same words waits for no text encoder.

This module must not know pipelines.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import torch

_PLAIN = (str, int, float, bool, tuple, torch.device, torch.dtype, type(None))


class PromptCache:
    """The newest results of text encoders, within a bound of bytes.

    Args:
        max_bytes: Of all tensors that are kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.bytes = 0
        self.hits = 0
        self.misses = 0

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
        self.bytes = 0

    def _get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key in self._kept:
            self.hits += 1
            self._kept.move_to_end(key)
            return self._kept[key][0]
        self.misses += 1
        result = make()
        size = _bytes_of(result)
        if size <= self._max_bytes:
            self._kept[key] = (result, size)
            self.bytes += size
        while self.bytes > self._max_bytes:
            _, (_, dropped) = self._kept.popitem(last=False)
            self.bytes -= dropped
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


def _bytes_of(result: Any) -> int:
    if isinstance(result, torch.Tensor):
        return int(result.nbytes)
    if isinstance(result, tuple | list):
        return sum(_bytes_of(each) for each in result)
    return 0
