"""A model of a few hundred thousand weights, shared by the tests because it does not change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from duologue.engines.models.moshi_lm.checkpoint import load_weights
from duologue.engines.models.moshi_lm.config import MoshiConfig, tiny
from duologue.engines.models.moshi_lm.random_checkpoint import save_random
from duologue.engines.models.moshi_lm.weights import MoshiWeights

# On shared cores, threads that wait for each other by spinning take seconds.
torch.set_num_threads(1)

SMALL = tiny(
    window=12,
    text_card=40,
    audio_card=30,
    codebooks=4,
    silence=(1, 2, 3, 4),
    sine=(5, 6, 7, 8),
)


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(scope="session")
def config() -> MoshiConfig:
    return SMALL


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As PersonaPlex is written: 16 steps, of which 4 are used here."""
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    save_random(path, SMALL, seed=1, dtype=torch.float32)
    return path


@pytest.fixture(scope="session")
def weights(checkpoint: Path) -> MoshiWeights:
    return load_weights(checkpoint, SMALL, dtype=torch.float32)
