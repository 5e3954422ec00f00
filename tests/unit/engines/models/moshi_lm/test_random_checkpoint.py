from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.layout import Layout
from duologue.engines.models.moshi_lm.prompt import moshi_prompt
from duologue.engines.models.moshi_lm.random_checkpoint import (
    save_random,
    save_random_voice,
    train_vocabulary,
)
from duologue.engines.models.moshi_lm.voice_prompt import load_voice
from duologue.engines.models.moshi_lm.weights import MoshiWeights
from tests.golden.moshi_lm.stepping import Stepper

pytestmark = pytest.mark.torch


def test_the_same_seed_makes_the_same_model(
    tmp_path: Path, checkpoint: Path, config: MoshiConfig
) -> None:
    for seed, alike in ((1, True), (2, False)):
        path = tmp_path / f"{seed}.safetensors"
        save_random(path, config, seed, dtype=torch.float32)
        pairs = zip(load_file(path).values(), load_file(checkpoint).values(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs) is alike


def test_layouts_have_as_many_steps_as_asked_for(tmp_path: Path, config: MoshiConfig) -> None:
    path = tmp_path / "model.safetensors"
    save_random(path, config, seed=1, layout=Layout("per_step", 8))
    assert Layout.of(load_file(path)) == Layout("per_step", 8)


def test_what_it_says_is_noise_and_not_always_the_same(
    weights: MoshiWeights, config: MoshiConfig
) -> None:
    stepper = Stepper(weights, config)
    grid = stepper.begin(moshi_prompt(config))
    said = [tuple(stepper.step({0: grid}, {0: config.silence})[0]) for _ in range(20)]
    assert len(set(said)) > 5


def test_a_voice_is_one_of_the_model(tmp_path: Path, config: MoshiConfig) -> None:
    path = tmp_path / "voice.pt"
    save_random_voice(path, config, frames=6, seed=1)
    voice = load_voice(path, config)
    assert voice.embeddings.shape == (5, config.dimension)
    assert voice.end.frame.heard == config.sine
    assert voice.end.row[1] == voice.end.frame.said[0]


def test_too_few_words_make_no_vocabulary(tmp_path: Path, config: MoshiConfig) -> None:
    with pytest.raises(RuntimeError):
        train_vocabulary(tmp_path / "tokenizer.model", config, ["word"])
