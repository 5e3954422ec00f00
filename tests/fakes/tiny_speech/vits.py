"""Shaped as ``facebook/mms-tts-eng``, with two speakers."""

from __future__ import annotations

import json
import string
from pathlib import Path

from transformers import VitsConfig, VitsModel, VitsTokenizer

from tests.fakes.tiny_diffusers.weights import drawn

SPEAKERS = 2


def vits(folder: Path) -> None:
    letters = ["<pad>", " ", *string.ascii_lowercase, "'", "-"]
    config = VitsConfig(
        vocab_size=len(letters),
        hidden_size=16,
        num_hidden_layers=2,
        ffn_dim=32,
        flow_size=16,
        spectrogram_bins=9,
        upsample_initial_channel=16,
        upsample_rates=(8, 8),
        upsample_kernel_sizes=(16, 16),
        resblock_kernel_sizes=(3,),
        resblock_dilation_sizes=((1, 3),),
        duration_predictor_filter_channels=16,
        prior_encoder_num_flows=2,
        prior_encoder_num_wavenet_layers=2,
        posterior_encoder_num_wavenet_layers=2,
        num_speakers=SPEAKERS,
        speaker_embedding_size=8,
    )
    model = drawn(VitsModel(config), 90)
    model.save_pretrained(folder)
    numbers = {letter: number for number, letter in enumerate(letters)}
    (folder / "vocab.json").write_text(json.dumps(numbers))
    VitsTokenizer(str(folder / "vocab.json"), phonemize=False).save_pretrained(folder)
