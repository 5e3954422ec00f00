"""A codec of a few thousand weights, shared by the tests because it does not change."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from duologue.codecs.mimi import Mimi
from tests.golden.mimi.sizes import TINY

# On shared cores, threads that wait for each other by spinning take seconds.
torch.set_num_threads(1)

GOLDEN = Path(__file__).parents[3] / "golden/mimi"


@pytest.fixture(scope="session")
def checkpoint() -> Path:
    return GOLDEN / "checkpoint.safetensors"


@pytest.fixture(scope="session")
def codec(checkpoint: Path) -> Mimi:
    return Mimi.load(checkpoint, TINY)
