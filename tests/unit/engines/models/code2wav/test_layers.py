from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi.slots import Slots
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code2wav.layers import CausalConvolution, CausalUpsampling, Layer

pytestmark = pytest.mark.speech

CHANNELS, LONG = 4, 20
X = torch.randn(1, CHANNELS, LONG, generator=torch.Generator().manual_seed(1))


def folder_of(path: Path, weight: Tensor) -> CheckpointFolder:
    bias = torch.randn(CHANNELS, generator=torch.Generator().manual_seed(2))
    save_file({"c.conv.weight": weight, "c.conv.bias": bias}, path / "model.safetensors")
    (path / "config.json").write_text("{}")
    return CheckpointFolder(path)


def in_steps(layer: Layer, size: int) -> Tensor:
    slot = torch.tensor([1])
    parts = [layer(X[:, :, at : at + size], slot, first=not at) for at in range(0, LONG, size)]
    return torch.cat(parts, dim=2)


def slots() -> Slots:
    return Slots(2, device=torch.device("cpu"), dtype=torch.float32)


@pytest.mark.parametrize("size", [1, 5, LONG])
@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize("inputs", [CHANNELS, 1], ids=["dense", "depthwise"])
def test_a_convolution_sees_the_past_and_zeros_before_it(
    tmp_path: Path, size: int, dilation: int, inputs: int
) -> None:
    weight = torch.randn(CHANNELS, inputs, 7)
    with folder_of(tmp_path, weight) as folder:
        layer = CausalConvolution(folder, "c", slots(), dilation=dilation)
        bias = folder.tensor("c.conv.bias")
    padded = F.pad(X, (6 * dilation, 0))
    groups = CHANNELS // inputs
    expected = F.conv1d(padded, weight, bias, dilation=dilation, groups=groups)
    torch.testing.assert_close(in_steps(layer, size), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 5, LONG])
@pytest.mark.parametrize("kernel", [3, 6])
def test_upsampling_leaves_out_the_beginning_once(tmp_path: Path, size: int, kernel: int) -> None:
    weight = torch.randn(CHANNELS, CHANNELS, kernel)
    with folder_of(tmp_path, weight) as folder:
        layer = CausalUpsampling(folder, "c", slots(), 3)
        bias = folder.tensor("c.conv.bias")
    whole = F.conv_transpose1d(X, weight, bias, stride=3)
    expected = whole[:, :, layer.left_out : LONG * 3]
    torch.testing.assert_close(in_steps(layer, size), expected, atol=1e-5, rtol=1e-5)
