"""Kernels run on the GPU where there is one, else in Triton's interpreter, at the same sizes."""

from __future__ import annotations

import os

import pytest
import torch

from tests.kernels.judge import DEVICE, Kernel

if DEVICE == "cpu":
    # Read when a kernel is declared, hence before any of them is imported.
    os.environ["TRITON_INTERPRET"] = "1"

KERNELS = [
    Kernel("reference", torch.float32),
    Kernel("reference", torch.bfloat16),
    Kernel("triton_kernel", torch.float32),
]
NARROW_KERNELS = [Kernel("reference", torch.bfloat16)]
if DEVICE == "cuda":
    # The interpreter does not round to fewer bits as a GPU does.
    KERNELS.append(Kernel("triton_kernel", torch.bfloat16))
    NARROW_KERNELS.append(Kernel("triton_kernel", torch.bfloat16))


@pytest.fixture(params=KERNELS, ids=str)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """One implementation of every operation."""
    chosen: Kernel = request.param
    return chosen


@pytest.fixture(params=NARROW_KERNELS, ids=str)
def narrow_kernel(request: pytest.FixtureRequest) -> Kernel:
    """One implementation, where the interpreter is too rough or too slow."""
    chosen: Kernel = request.param
    return chosen


@pytest.fixture
def dtype(kernel: Kernel) -> torch.dtype:
    """What it is tried with."""
    return kernel.dtype


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(5)
