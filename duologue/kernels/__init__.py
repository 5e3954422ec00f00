"""The few operations that a model's step is made of where a library's own would be too slow.

One folder for each: ``__init__`` says what it computes and chooses how, ``reference`` computes it
in plain torch on any device, ``triton_kernel`` on a GPU. Nothing here knows models or sessions, and
everything may be captured in a CUDA graph: no value is looked at, nothing waits.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from torch import Tensor


def implementation(operation: str, tensor: Tensor) -> ModuleType:
    """Choose the module that computes an operation where its tensors are.

    Args:
        operation: The package of the operation.
        tensor: Any of its inputs.
    """
    return _module(operation, tensor.is_cuda)


@cache
def _module(operation: str, on_gpu: bool) -> ModuleType:
    # Triton has no wheels for machines without a GPU's libraries, so it is looked for last.
    return import_module(f"{operation}.{'triton_kernel' if on_gpu else 'reference'}")
