"""Functions on fixed tensors, as CUDA graphs where there is a GPU.

Nothing is allocated and nothing is decided when one runs: inputs are written to the same place each
time, and outputs are found where they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

T = TypeVar("T")
WARM_UPS = 2
"""Runs before the capture: libraries choose and load their kernels in them."""


class Input:
    """A tensor on the device, and the memory of the host that it is filled from."""

    __slots__ = ("_host", "tensor", "values")

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
        on_gpu = device.type == "cuda"
        self._host = torch.zeros(shape, dtype=dtype, pin_memory=on_gpu)
        self.tensor = self._host.to(device, copy=True) if on_gpu else self._host
        self.values: npt.NDArray[np.generic] = self._host.numpy()
        """To be written; the same memory as the tensor where there is no GPU."""

    def send(self) -> None:
        """Copy what was written to the device, in the order of its work."""
        if self.tensor is not self._host:
            self.tensor.copy_(self._host, non_blocking=True)


class Output:
    """What a step leaves on the device, and the memory of the host that it is read from."""

    __slots__ = ("_host", "_tensor")

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._host = torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda)

    def fetch(self, tensor: Tensor) -> None:
        """Copy it to the host, in the order of the device's work."""
        self._host.copy_(tensor, non_blocking=True)

    @property
    def values(self) -> npt.NDArray[np.generic]:
        """What was fetched, once the device's work is done."""
        values: npt.NDArray[np.generic] = self._host.numpy()
        return values


class Captured(Generic[T]):
    """A function whose inputs are tensors that keep their place.

    Args:
        pool: Of a graph whose memory may be used again, since they never run at the same time.
    """

    __slots__ = ("_function", "_graph", "_result")

    def __init__(
        self, function: Callable[[], T], device: torch.device, pool: object = None
    ) -> None:
        self._function = function
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda":
            self._result, self._graph = _capture(function, pool)

    def __call__(self) -> T:
        """Run it; on a GPU, this only says that it shall run."""
        if self._graph is None:
            return self._function()
        self._graph.replay()
        return self._result


def _capture(function: Callable[[], T], pool: object) -> tuple[T, torch.cuda.CUDAGraph]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            function()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        result = function()
    return result, graph
