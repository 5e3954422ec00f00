"""Matrix products over windows, against torch's own convolutions of the whole signal."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi.convolution import Convolution, DepthwiseUpsampling
from duologue.codecs.mimi.slots import Slots

pytestmark = pytest.mark.torch

ON = torch.arange(2)
NOBODY = 2


def slots() -> Slots:
    return Slots(2, device=torch.device("cpu"), dtype=torch.float64)


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("steps", [(12,), (4, 4, 4), (8, 4)])
@pytest.mark.parametrize(("kernel", "stride"), [(7, 1), (3, 1), (1, 1), (4, 2), (8, 4)])
def test_a_convolution_in_steps_is_that_of_the_whole(
    kernel: int, stride: int, steps: tuple[int, ...]
) -> None:
    weight, bias, x = noise(5, 3, kernel), noise(5), noise(2, 12, 3)
    stream = Convolution.plain(weight, bias, stride=stride).stream(slots())
    got = torch.cat([stream(part, ON) for part in x.split(list(steps), 1)], 1)
    padded = F.pad(x.transpose(1, 2), (kernel - stride, 0))
    torch.testing.assert_close(got, F.conv1d(padded, weight, bias, stride).transpose(1, 2))


def test_at_the_beginning_the_past_may_be_the_first_input() -> None:
    weight, x = noise(3, 3, 4), noise(2, 4, 3)
    stream = Convolution.plain(weight, stride=2).stream(slots())
    first = torch.tensor([True, False])
    got = stream(x, ON, first=first)
    repeated = F.pad(x.transpose(1, 2), (2, 0), mode="replicate")
    silent = F.pad(x.transpose(1, 2), (2, 0))
    padded = torch.stack((repeated[0], silent[1]))
    torch.testing.assert_close(got, F.conv1d(padded, weight, stride=2).transpose(1, 2))


@pytest.mark.parametrize("steps", [(6,), (1,) * 6, (2, 3, 1)])
@pytest.mark.parametrize("up", [1, 2, 5])
def test_a_transposed_convolution_in_steps_is_that_of_the_whole(
    up: int, steps: tuple[int, ...]
) -> None:
    weight, bias, x = noise(3, 4, 2 * up), noise(4), noise(2, 6, 3)
    stream = Convolution.transposed(weight, bias).stream(slots())
    got = torch.cat([stream(part, ON) for part in x.split(list(steps), 1)], 1)
    whole = F.conv_transpose1d(x.transpose(1, 2), weight, bias, stride=up)[..., : 6 * up]
    torch.testing.assert_close(got, whole.transpose(1, 2))


@pytest.mark.parametrize("steps", [(6,), (1,) * 6, (2, 3, 1)])
def test_upsampling_in_steps_is_that_of_the_whole(steps: tuple[int, ...]) -> None:
    weight, x = noise(3, 1, 4), noise(2, 6, 3)
    stream = DepthwiseUpsampling.of(weight).stream(slots())
    got = torch.cat([stream(part, ON) for part in x.split(list(steps), 1)], 1)
    whole = F.conv_transpose1d(x.transpose(1, 2), weight, stride=2, groups=3)[..., :12]
    torch.testing.assert_close(got, whole.transpose(1, 2))


def test_an_activation_comes_before_the_weights() -> None:
    weight, bias, x = noise(5, 3, 7), noise(5), noise(2, 12, 3)
    stream = Convolution.plain(weight, bias).stream(slots())
    got = torch.cat([stream(part, ON, activated=True) for part in x.split(4, 1)], 1)
    padded = F.pad(F.elu(x).transpose(1, 2), (6, 0))
    torch.testing.assert_close(got, F.conv1d(padded, weight, bias).transpose(1, 2))


def test_a_slot_that_does_not_take_part_keeps_its_past() -> None:
    memory = slots()
    stream = Convolution.plain(noise(5, 3, 7), noise(5)).stream(memory)
    stream(noise(2, 8, 3), ON)
    before = [memory.snapshot(slot).tensors[0] for slot in (0, 1)]
    stream(noise(2, 8, 3) + 1, torch.tensor([0, NOBODY]))
    assert not torch.equal(memory.snapshot(0).tensors[0], before[0])
    assert torch.equal(memory.snapshot(1).tensors[0], before[1])
