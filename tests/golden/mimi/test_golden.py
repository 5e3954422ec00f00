"""The same weights and samples gave the reference these codes and samples (see ``README.md``)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from duologue.codecs.mimi import Mimi
from tests.golden.mimi.sizes import TINY

pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parent
PCM_DB = 100


@pytest.mark.parametrize("frames_per_step", [1, 150])
def test_codes_equal_the_references_and_samples_are_within_100_db(frames_per_step: int) -> None:
    codec = Mimi.load(FOLDER / "checkpoint.safetensors", TINY)
    golden = load_file(FOLDER / "outputs.safetensors")
    codes = golden["codes"].long()
    on = torch.ones(1, dtype=torch.bool)
    encoder = codec.encoder(1, max_frames=frames_per_step)
    decoder = codec.decoder(1, max_frames=frames_per_step)
    samples = frames_per_step * TINY.frame_samples
    coded = [encoder.step(part, on) for part in golden["pcm"].split(samples, 1)]
    played = [decoder.step(part, on) for part in codes.split(frames_per_step, 2)]
    assert torch.equal(torch.cat(coded, 2), codes)
    error = torch.cat(played, 1) - golden["decoded"]
    assert 20 * torch.log10(golden["decoded"].norm() / error.norm()) > PCM_DB
    assert all(row.unique().numel() > 8 for row in codes[0]), "a golden that says too little"
