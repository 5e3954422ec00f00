from __future__ import annotations

from pathlib import Path

import pytest
import torch

from duologue.codecs.mimi import Mimi
from tests.golden.mimi.sizes import TINY

pytestmark = pytest.mark.torch


def test_whole_recordings_keep_their_length(codec: Mimi) -> None:
    codes = codec.encode(torch.zeros(2, 3 * TINY.frame_samples))
    assert codes.shape == (2, TINY.codebooks, 3)
    assert codec.decode(codes).shape == (2, 3 * TINY.frame_samples)


@pytest.mark.parametrize("samples", [0, 1, TINY.frame_samples + 1])
def test_a_recording_of_part_of_a_frame_is_refused(codec: Mimi, samples: int) -> None:
    with pytest.raises(ValueError, match=f"n a multiple of {TINY.frame_samples}"):
        codec.encode(torch.zeros(1, samples))


def test_in_half_precision_the_state_is_half_and_samples_are_whole(checkpoint: Path) -> None:
    codec = Mimi.load(checkpoint, TINY, dtype=torch.bfloat16)
    decoder = codec.decoder(1)
    pcm = decoder.step(torch.ones(1, TINY.codebooks, 1, dtype=torch.int64), torch.tensor([True]))
    assert pcm.dtype == torch.float32
    kinds = {tensor.dtype for tensor in decoder.snapshot(0).tensors}
    assert kinds == {torch.bfloat16, torch.int64}
