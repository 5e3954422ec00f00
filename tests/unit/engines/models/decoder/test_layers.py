from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.decoder.layers import Experts, Gated, Layer
from tests.unit.engines.models.decoder.random_weights import DENSE, EXPERTS, write_random

pytestmark = pytest.mark.speech


def test_a_gated_layer_is_its_formula(tmp_path: Path) -> None:
    x = torch.randn(5, DENSE.dimension)
    with CheckpointFolder(write_random(tmp_path, DENSE)) as folder:
        layer = Gated.load(folder, "m.layers.0.mlp", DENSE.dimension, DENSE.feed_forward)
        gate, up, down = (
            folder.tensor(f"m.layers.0.mlp.{part}_proj.weight") for part in ("gate", "up", "down")
        )
    expected = F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)
    torch.testing.assert_close(layer(x), expected)


def test_each_row_passes_its_likeliest_experts_and_the_shared_one(tmp_path: Path) -> None:
    config = replace(DENSE, experts=EXPERTS)
    x = torch.randn(6, DENSE.dimension, generator=torch.Generator().manual_seed(1))
    with CheckpointFolder(write_random(tmp_path, config)) as folder:
        layer = Experts.load(folder, "m.layers.0.mlp", DENSE.dimension, EXPERTS)
    assert layer.shared is not None
    assert layer.shared_gate is not None
    rows = []
    for row in x[:, None]:
        odds = F.linear(row, layer.router).softmax(dim=-1)[0]
        best = odds.argsort(descending=True)[: EXPERTS.chosen].tolist()
        share = odds[best].sum()
        made = sum(odds[index] / share * layer.experts[index](row) for index in best)
        rows.append(made + F.linear(row, layer.shared_gate).sigmoid() * layer.shared(row))
    torch.testing.assert_close(layer(x), torch.cat(rows))


def test_what_a_family_lacks_is_left_out(tmp_path: Path) -> None:
    with CheckpointFolder(write_random(tmp_path, DENSE)) as folder:
        layer = Layer.load(folder, "m.layers.1", DENSE)
    assert layer.query_norm is not None
    assert layer.scale1 is None
