from __future__ import annotations

import math

import pytest

from duologue.codecs.mimi import MimiConfig
from duologue.codecs.mimi.layout import checkpoint_shapes

pytestmark = pytest.mark.torch


def test_the_published_file_has_318_tensors() -> None:
    assert len(checkpoint_shapes(MimiConfig())) == 318


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("encoder.model.0.conv.conv.weight", (64, 1, 7)),
        ("encoder.model.1.block.1.conv.conv.weight", (32, 64, 3)),
        ("encoder.model.12.conv.conv.weight", (1024, 512, 16)),
        ("encoder.model.14.conv.conv.bias", (512,)),
        ("decoder.model.2.convtr.convtr.weight", (1024, 512, 16)),
        ("decoder.model.12.block.3.conv.conv.weight", (64, 32, 1)),
        ("decoder.model.14.conv.conv.weight", (1, 64, 3)),
        ("encoder_transformer.transformer.layers.7.self_attn.in_proj_weight", (1536, 512)),
        ("decoder_transformer.transformer.layers.0.layer_scale_2.scale", (512,)),
        ("downsample.conv.conv.conv.weight", (512, 512, 4)),
        ("upsample.convtr.convtr.convtr.weight", (512, 1, 4)),
        ("quantizer.rvq_first.vq.layers.0._codebook.embedding_sum", (2048, 256)),
        ("quantizer.rvq_rest.vq.layers.30._codebook.cluster_usage", (2048,)),
    ],
)
def test_names_and_shapes_are_those_of_the_published_file(
    name: str, shape: tuple[int, ...]
) -> None:
    assert checkpoint_shapes(MimiConfig())[name] == shape


def test_the_published_network_has_79_million_weights_beside_its_codebooks() -> None:
    shapes = checkpoint_shapes(MimiConfig())
    weights = sum(math.prod(shape) for name, shape in shapes.items() if "_codebook" not in name)
    assert round(weights / 1e6, 1) == 79.3
