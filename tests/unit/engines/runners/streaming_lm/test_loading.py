"""From files to a network."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from duologue.codecs.mimi import save_random as save_random_codec
from duologue.core.errors import ConfigError
from duologue.engines.models.moshi_lm.random_checkpoint import save_random
from duologue.engines.runners.streaming_lm.loading import NETWORKS, limits_for, load_network
from duologue.engines.runners.streaming_lm.settings import StreamingLmSettings

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    config, codec = NETWORKS["moshi-tiny"]
    save_random(folder / "model.safetensors", config, seed=1)
    save_random_codec(folder / "mimi.safetensors", codec, seed=2)
    return folder


def settings(files: Path, **changes: object) -> StreamingLmSettings:
    return StreamingLmSettings(
        network="moshi-tiny",
        weights=str(files / "model.safetensors"),
        codec=str(files / "mimi.safetensors"),
        tokenizer="",
        **changes,  # type: ignore[arg-type]
    )


def test_a_processor_gets_float32_and_as_many_slots_as_are_wanted(files: Path) -> None:
    chosen = settings(files, max_sessions=3)
    network = load_network(chosen)
    assert network.dtype is torch.float32
    assert network.codec.config.frame_samples == 1920
    assert limits_for(chosen, network).slots == 3
    assert not network.narrow


def test_weights_can_be_kept_in_eight_bits(files: Path) -> None:
    network = load_network(settings(files, eight_bit_weights=True))
    assert len(network.narrow) == network.config.layers
    assert network.narrow[0].gate_up.values.dtype is torch.float8_e4m3fn
    assert not network.weights.layers


@pytest.mark.parametrize(
    ("device", "message"),
    [("gpu!", "no device 'gpu!'"), ("cuda:99", "no GPU 'cuda:99' here"), ("meta", "cannot run")],
)
def test_a_device_that_is_not_there_is_named(files: Path, device: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_network(settings(files, device=device))
