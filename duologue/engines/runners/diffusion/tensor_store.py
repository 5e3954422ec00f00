"""Results that are kept as long as there is room: the newest ones, within a bound of bytes.

This module must not know what they are results of.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import torch


class TensorStore:
    """Keeps tensors, and tuples and lists of them, by key.

    Args:
        max_bytes: Of all tensors that are kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.bytes = 0

    def get(self, key: Hashable) -> Any:
        """Return what is kept, which is the newest then; ``None``: nothing is."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def put(self, key: Hashable, result: Any) -> None:
        """Keep a result; what has not been asked for longest makes room."""
        self.drop(key)
        size = bytes_of(result)
        if size <= self._max_bytes:
            self._kept[key] = (result, size)
            self.bytes += size
        while self.bytes > self._max_bytes:
            _, (_, dropped) = self._kept.popitem(last=False)
            self.bytes -= dropped

    def drop(self, key: Hashable) -> None:
        """Keep this one no longer."""
        _, size = self._kept.pop(key, (None, 0))
        self.bytes -= size

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self.bytes = 0


def bytes_of(result: Any) -> int:
    """Return the size of all tensors of a result."""
    if isinstance(result, torch.Tensor):
        return int(result.nbytes)
    if isinstance(result, tuple | list):
        return sum(bytes_of(each) for each in result)
    return 0
