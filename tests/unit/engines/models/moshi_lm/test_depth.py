from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.engines.models.moshi_lm.config import RMS_EPSILON, MoshiConfig
from duologue.engines.models.moshi_lm.depth import write_codes
from duologue.engines.models.moshi_lm.weights import DepthWeights, MoshiWeights

pytestmark = pytest.mark.torch


def logits_at_once(
    weights: DepthWeights, config: MoshiConfig, hidden: Tensor, text: int, codes: list[int]
) -> Tensor:
    """The same network on a whole frame that is known: one row per step."""

    def norm(x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, weight.shape, weight, RMS_EPSILON)

    steps = config.codebooks
    x = (hidden @ weights.input.t()).view(steps, -1)
    before = [weights.text_embedding[text]]
    before += [weights.code_embeddings[k][code] for k, code in enumerate(codes[:-1])]
    x = x + torch.stack(before)
    for layer in weights.layers:
        qkv = torch.einsum("sd,sod->so", norm(x, layer.norm1), layer.in_proj)
        q, k, v = qkv.view(steps, 3, config.depth_heads, -1).permute(1, 2, 0, 3)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        attended = attended.transpose(0, 1).flatten(1)
        x = x + torch.einsum("sd,sod->so", attended, layer.out_proj)
        gate, up = torch.einsum("sd,sod->so", norm(x, layer.norm2), layer.gate_up).chunk(2, 1)
        x = x + torch.einsum("sd,sod->so", F.silu(gate) * up, layer.down)
    return torch.einsum("sd,sod->so", x, weights.heads)


def test_step_by_step_equals_the_whole_frame_at_once(
    weights: MoshiWeights, config: MoshiConfig
) -> None:
    hidden = torch.randn((3, config.dimension), generator=torch.Generator().manual_seed(1))
    text = torch.tensor([1, 7, 33], dtype=torch.int32)
    seen: list[Tensor] = []

    def choose(step: int, logits: Tensor) -> Tensor:
        assert step == len(seen)
        seen.append(logits)
        return logits.argmax(1).int()

    codes = write_codes(weights.depth, config, hidden, text, choose)
    assert codes.dtype == torch.int32
    for row in range(3):
        chosen = codes[row].tolist()
        wanted = logits_at_once(weights.depth, config, hidden[row], int(text[row]), chosen)
        found = torch.stack([logits[row] for logits in seen])
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        assert chosen == wanted.argmax(1).tolist()
