"""Rings and windows, against attention over all positions at once in float64."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi.checkpoint import load_tensors
from duologue.codecs.mimi.slots import Slots
from duologue.codecs.mimi.transformer import TransformerLayer, TransformerStream
from tests.golden.mimi.sizes import TINY
from tests.unit.codecs.mimi.conftest import GOLDEN

pytestmark = pytest.mark.torch

SMALL = replace(TINY, context=9)
LENGTH = 46  # several times around a ring


def layers(count: int) -> tuple[TransformerLayer, ...]:
    tensors = load_tensors(GOLDEN / "checkpoint.safetensors", TINY)

    def named(name: str) -> Tensor:
        return tensors[name].double()

    return tuple(
        TransformerLayer.load(named, f"encoder_transformer.transformer.layers.{index}")
        for index in range(count)
    )


def stream(count: int = 2, slots: int = 1, max_frames: int = 1) -> TransformerStream:
    memory = Slots(slots, device=torch.device("cpu"), dtype=torch.float64)
    return TransformerStream(SMALL, layers(count), memory, max_frames)


def noise(slots: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randn(slots, LENGTH, SMALL.dimension, dtype=torch.float64, generator=generator)


def whole(x: Tensor) -> Tensor:
    """The definition: every position looks back on the window, its rotation a complex number."""
    size = SMALL.head_dimension
    age = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)
    seen = (age >= 0) & (age < SMALL.context)
    speed = SMALL.rope_base ** (-torch.arange(size // 2) * 2 / size)
    turn = torch.polar(torch.ones(LENGTH, size // 2), torch.arange(LENGTH)[:, None] * speed)
    for layer in layers(2):
        normed = F.layer_norm(x, x.shape[-1:], *layer.norm1, eps=1e-5)
        q, k, v = (normed @ layer.in_proj.T).unflatten(2, (3, SMALL.heads, size)).unbind(2)
        q, k = (
            torch.view_as_real(torch.view_as_complex(each.unflatten(3, (-1, 2))) * turn[:, None])
            for each in (q, k)
        )
        scores = torch.einsum("sqhdc,skhdc->shqk", q, k) / math.sqrt(size)
        weights = scores.masked_fill(~seen, -math.inf).softmax(-1)
        mixed = torch.einsum("shqk,skhd->sqhd", weights, v).flatten(2)
        x = x + layer.scale1 * (mixed @ layer.out_proj.T)
        normed = F.layer_norm(x, x.shape[-1:], *layer.norm2, eps=1e-5)
        x = x + layer.scale2 * (F.gelu(normed @ layer.linear1.T) @ layer.linear2.T)
    return x


@pytest.mark.parametrize(
    "steps", [[1] * LENGTH, [2] * 23, [1, 2] * 15 + [1], [6] * 7 + [4], [LENGTH]]
)
def test_steps_of_any_length_give_what_the_definition_gives(steps: list[int]) -> None:
    x = noise()
    on = torch.arange(1)
    frames = math.ceil(max(steps) / SMALL.positions_per_frame)
    transformer = stream(max_frames=frames)
    got = torch.cat([transformer(part, on) for part in x.split(steps, 1)], 1)
    # Angles are float32, as in the network's training.
    torch.testing.assert_close(got, whole(x), atol=1e-5, rtol=0)


def test_the_window_ends_where_the_configuration_says() -> None:
    x = noise()
    old, seen = x.clone(), x.clone()
    old[:, LENGTH - SMALL.context - 1, 0] += 1
    seen[:, LENGTH - SMALL.context, 0] += 1
    on = torch.arange(1)

    def last(signal: Tensor) -> Tensor:
        transformer = stream(count=1)
        return torch.cat([transformer(part, on) for part in signal.split(2, 1)], 1)[:, -1]

    assert torch.equal(last(old), last(x))
    assert not torch.allclose(last(seen), last(x))


def test_slots_of_different_age_share_a_batch() -> None:
    x = noise(2)
    transformer = stream(slots=2)
    late = 16
    got = []
    for begin in range(0, LENGTH, 2):
        # The second slot begins later, and waits now and then.
        on = torch.tensor([0, 1 if begin >= late else 2])
        inputs = torch.stack((x[0, begin : begin + 2], x[1, max(0, begin - late) :][:2]))
        got.append(transformer(inputs, on))
    assert transformer.position.tolist()[:2] == [LENGTH, LENGTH - late]
    torch.testing.assert_close(torch.cat(got, 1)[:1], whole(x[:1]), atol=1e-5, rtol=0)
    second = torch.cat(got, 1)[1:, late:]
    torch.testing.assert_close(second, whole(x[1:])[:, : LENGTH - late], atol=1e-5, rtol=0)
