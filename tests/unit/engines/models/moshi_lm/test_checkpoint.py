from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from duologue.core.errors import ConfigError
from duologue.engines.models.moshi_lm.checkpoint import load_weights
from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.layout import Layout
from duologue.engines.models.moshi_lm.random_checkpoint import save_random
from duologue.engines.models.moshi_lm.weights import MoshiWeights

pytestmark = pytest.mark.torch


def tensors_of(thing: object) -> list[Tensor]:
    """All tensors of a tree of dataclasses."""
    if isinstance(thing, Tensor):
        return [thing]
    parts = thing if isinstance(thing, tuple) else [getattr(thing, n) for n in thing.__slots__]
    return [tensor for part in parts for tensor in tensors_of(part)]


def test_steps_that_are_not_used_are_not_in_memory(
    checkpoint: Path, config: MoshiConfig, weights: MoshiWeights
) -> None:
    stored = load_file(checkpoint)
    layer, size = weights.depth.layers[0], config.depth_dimension
    fused = stored["depformer.layers.0.self_attn.in_proj_weight"]
    assert len(fused) == 16 * 3 * size
    assert torch.equal(layer.in_proj.flatten(0, 1), fused[: config.codebooks * 3 * size])
    for tensor in tensors_of(weights):
        held = tensor.untyped_storage().nbytes()
        assert held == tensor.numel() * tensor.element_size(), "a view of something larger"


def test_both_layouts_load_to_the_same_weights(
    tmp_path: Path, checkpoint: Path, config: MoshiConfig, weights: MoshiWeights
) -> None:
    stored = load_file(checkpoint)
    for index in range(config.depth_layers):
        prefix = f"depformer.layers.{index}.self_attn"
        for fused, each in (("in_proj_weight", "in_projs"), ("out_proj.weight", "out_projs")):
            for step, part in enumerate(stored.pop(f"{prefix}.{fused}").chunk(16)):
                stored[f"{prefix}.{each}.{step}.weight"] = part.contiguous()
    for index in range(config.layers):
        prefix = f"transformer.layers.{index}.self_attn"
        stored[f"{prefix}.in_projs.0.weight"] = stored.pop(f"{prefix}.in_proj_weight")
        stored[f"{prefix}.out_projs.0.weight"] = stored.pop(f"{prefix}.out_proj.weight")
    path = tmp_path / "per_step.safetensors"
    save_file(stored, path)
    again = load_weights(path, config, dtype=torch.float32)
    pairs = zip(tensors_of(weights), tensors_of(again), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_weights_are_of_the_type_asked_for_but_norms_are_not(
    checkpoint: Path, config: MoshiConfig
) -> None:
    weights = load_weights(checkpoint, config)
    assert weights.embeddings.dtype == weights.depth.heads.dtype == torch.bfloat16
    assert weights.out_norm.dtype == weights.layers[0].norm1.dtype == torch.float32
    assert weights.depth.layers[0].norm2.dtype == torch.float32


def test_progress_counts_what_is_used_to_the_end(checkpoint: Path, config: MoshiConfig) -> None:
    told: list[tuple[int, int]] = []
    load_weights(checkpoint, config, progress=lambda read, total: told.append((read, total)))
    used = Layout("fused", config.codebooks).shapes(config)
    assert len(told) >= len(used)
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


def test_a_file_that_is_none_is_refused(tmp_path: Path, config: MoshiConfig) -> None:
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"not safetensors")
    for path in (broken, tmp_path / "missing.safetensors"):
        with pytest.raises(ConfigError, match="cannot read the checkpoint"):
            load_weights(path, config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"out_norm.alpha": None}, "out_norm.alpha is missing"),
        ({"extra.weight": torch.zeros(1)}, "extra.weight is unknown"),
        ({"out_norm.alpha": torch.zeros(1, 1, 7)}, r"is \[1, 1, 7\], must be \[1, 1, 64\]"),
        (
            {"out_norm.alpha": torch.zeros((1, 1, 64), dtype=torch.int32)},
            "is of type I32, must be one of",
        ),
    ],
)
def test_a_file_that_does_not_fit_says_what_is_wrong(
    tmp_path: Path,
    checkpoint: Path,
    config: MoshiConfig,
    change: dict[str, Tensor | None],
    message: str,
) -> None:
    stored = load_file(checkpoint) | change
    path = tmp_path / "model.safetensors"
    save_file({name: tensor for name, tensor in stored.items() if tensor is not None}, path)
    with pytest.raises(ConfigError, match=message):
        load_weights(path, config)


def test_of_many_wrong_tensors_three_are_named(tmp_path: Path, config: MoshiConfig) -> None:
    path = tmp_path / "model.safetensors"
    stored = {f"depformer_in.{step}.weight": torch.zeros(1) for step in range(4)}
    save_file(stored, path)
    with pytest.raises(ConfigError, match=r"; and \d+ more"):
        load_weights(path, config)


def test_a_file_with_too_few_steps_is_refused(tmp_path: Path, config: MoshiConfig) -> None:
    path = tmp_path / "model.safetensors"
    save_random(path, config, seed=1, layout=Layout("fused", 3))
    with pytest.raises(ConfigError, match="has 3 steps of a depth transformer"):
        load_weights(path, config)
