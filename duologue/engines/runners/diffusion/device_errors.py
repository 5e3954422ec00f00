"""What an exception says of the device: that it is full, or that it is lost. Pure."""

from __future__ import annotations

import torch

_FULL = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""What libraries say that take memory of a GPU themselves, not from torch's allocator."""


def is_full(exc: BaseException) -> bool:
    """Tell whether there was no memory."""
    if isinstance(exc, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(exc, RuntimeError) and any(each in str(exc) for each in _FULL)


def is_lost(exc: BaseException) -> bool:
    """Tell whether nothing will ever run on the device again in this process.

    As after a kernel that read beyond its memory: every later call fails the same way.
    """
    return isinstance(exc, torch.AcceleratorError) and not is_full(exc)
