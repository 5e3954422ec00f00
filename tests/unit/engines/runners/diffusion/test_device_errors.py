from __future__ import annotations

import pytest
import torch

from duologue.engines.runners.diffusion.device_errors import is_full, is_lost

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("error", "full", "lost"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"), True, False),
        (MemoryError(), True, False),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True, 0),
        (torch.AcceleratorError("CUDA error: out of memory"), True, False),
        (torch.AcceleratorError("CUDA error: an illegal memory access was met"), False, True),
        (RuntimeError("the size of tensor a must match that of b"), False, False),
        (ValueError("CUDA error: out of memory"), False, False),
    ],
)
def test_a_device_that_is_full_can_be_used_again_and_a_lost_one_cannot(
    error: BaseException, full: bool, lost: bool
) -> None:
    assert is_full(error) == full
    assert is_lost(error) == lost
