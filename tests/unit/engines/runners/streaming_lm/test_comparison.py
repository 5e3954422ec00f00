"""Modes against the wide model, on a tiny network of noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from duologue.codecs.mimi import Mimi
from duologue.codecs.mimi import save_random as save_random_codec
from duologue.core.errors import ConfigError
from duologue.engines.models.moshi_lm.checkpoint import load_weights
from duologue.engines.models.moshi_lm.random_checkpoint import save_random
from duologue.engines.runners.streaming_lm.comparison import MODES, compare
from duologue.engines.runners.streaming_lm.frame_step import Network
from tests.unit.engines.runners.streaming_lm.tiny_network import (
    CODEC,
    CONFIG,
    SAMPLES,
    opening,
    persona,
    speech,
)

pytestmark = pytest.mark.torch

LONG = replace(CONFIG, window=64)


def made(folder: Path) -> tuple[Network, Mimi]:
    torch.set_num_threads(1)
    model, codec = folder / "model.safetensors", folder / "mimi.safetensors"
    save_random(model, LONG, seed=3)
    save_random_codec(codec, CODEC, seed=4)
    weights = load_weights(model, LONG, dtype=torch.bfloat16)
    wide = Network(LONG, weights, Mimi.load(codec, CODEC))
    return wide, Mimi.load(codec, CODEC, dtype=torch.bfloat16)


def test_each_mode_is_near_the_wide_model_and_not_the_same(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    network, narrow = made(tmp_path)
    found = compare(
        network,
        narrow,
        opening(prompt=persona(5)),
        np.concatenate(speech(20, seed=5)),
        lambda *news: told.append(news),
    )
    assert (found.frames, found.wide) == (19, "bfloat16")
    assert [each.mode for each in found.modes] == [mode.name for mode in MODES]
    for each in found.modes:
        assert 0.2 < each.text_equal <= 1
        assert 0.2 < each.codes_equal <= 1
        assert 0 <= each.text_kl <= each.text_kl_p99
    by_name = {each.mode: each for each in found.modes}
    assert 0 < by_name["eight_bit_kv"].text_kl < 1
    assert 0 < by_name["eight_bit_weights"].codes_kl < 1
    assert by_name["eight_bit_kv"].codec_snr_db is None
    codec = by_name["narrow_codec"]
    assert codec.codec_snr_db is not None
    assert 10 < codec.codec_snr_db < 100
    assert codec.heard_equal is not None
    assert 0.5 < codec.heard_equal <= 1
    assert {what for what, _, _ in told} == {"the call", "wide", *by_name}
    for what in by_name:
        assert [total for name, _, total in told if name == what][-1] == max(
            done for name, done, _ in told if name == what
        )


def test_a_recording_that_is_not_seen_whole_is_refused(tmp_path: Path) -> None:
    network, narrow = made(tmp_path)
    for frames in (1, LONG.window):
        silence = np.zeros(frames * SAMPLES, np.float32)
        with pytest.raises(ConfigError, match="must have 2 to"):
            compare(network, narrow, opening(), silence, lambda *_: None)
