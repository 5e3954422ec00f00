from __future__ import annotations

import pytest
import torch

from duologue.codecs.mimi.checkpoint import load_tensors
from duologue.codecs.mimi.seanet import SeanetStream, decoder_stages, encoder_stages
from duologue.codecs.mimi.slots import Slots
from tests.golden.mimi.sizes import TINY
from tests.unit.codecs.mimi.conftest import GOLDEN

pytestmark = pytest.mark.torch

ON = torch.arange(1)
HOP = TINY.frame_samples // TINY.positions_per_frame


def stream(side: str) -> SeanetStream:
    named = load_tensors(GOLDEN / "checkpoint.safetensors", TINY).__getitem__
    stages = encoder_stages(TINY, named) if side == "encoder" else decoder_stages(TINY, named)
    return SeanetStream(stages, Slots(1, device=torch.device("cpu"), dtype=torch.float32))


def test_the_encoder_makes_one_latent_of_each_hop_and_the_decoder_one_hop_of_each() -> None:
    latents = stream("encoder")(torch.zeros(1, 5 * HOP, 1), ON)
    assert latents.shape == (1, 5, TINY.dimension)
    assert stream("decoder")(latents, ON).shape == (1, 5 * HOP, 1)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_what_comes_later_changes_nothing_that_was_given(side: str) -> None:
    step = HOP if side == "encoder" else 1
    channels = 1 if side == "encoder" else TINY.dimension
    x = torch.randn(1, 6 * step, channels, generator=torch.Generator().manual_seed(4))
    other = x.clone()
    other[:, 4 * step :] += 1
    whole, changed = stream(side)(x, ON), stream(side)(other, ON)
    same = whole.shape[1] * 4 // 6
    torch.testing.assert_close(whole[:, :same], changed[:, :same])
    assert not torch.allclose(whole[:, same:], changed[:, same:])
