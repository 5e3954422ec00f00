from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from duologue.core.errors import ConfigError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.runners.speech.qwen3_omni_senses import Ears, Eyes
from tests.fakes.tiny_speech.omni_judge import library, mel_of, patches_of

pytestmark = [pytest.mark.speech, pytest.mark.timeout(120)]

Tiny = Callable[[str], Path]
DICE = np.random.default_rng(3)
PIXELS = DICE.integers(0, 255, (70, 90, 3), dtype=np.uint8)
SAMPLES = DICE.normal(0, 0.1, 21_000).astype(np.float32)


def test_a_picture_is_what_the_library_sees(tiny_speech: Tiny) -> None:
    folder = tiny_speech("qwen3_omni")
    with torch.inference_mode(), CheckpointFolder(folder) as checkpoint:
        sensed = Eyes(checkpoint).see(PIXELS)
        patches, grid = patches_of(folder, [PIXELS])
        seen = library(folder).thinker.get_image_features(patches, grid, return_dict=True)
    torch.testing.assert_close(sensed.features, seen.pooler_output[0])
    assert sensed.grid == (2, 3)
    assert len(sensed.features) == 6
    for ours, theirs in zip(sensed.deep, seen.deepstack_features, strict=True):
        torch.testing.assert_close(ours, theirs[0])


def test_a_recording_is_what_the_library_hears(tiny_speech: Tiny) -> None:
    folder = tiny_speech("qwen3_omni")
    with torch.inference_mode(), CheckpointFolder(folder) as checkpoint:
        sensed = Ears(checkpoint).hear(SAMPLES)
        mel, mask = mel_of(folder, [SAMPLES])
        heard = library(folder).thinker.get_audio_features(mel, mask, return_dict=True)
    torch.testing.assert_close(sensed.features, heard.last_hidden_state)
    assert sensed.grid is None


def test_a_checkpoint_that_is_not_whole_says_what_is_missing(
    tiny_speech: Tiny, tmp_path: Path
) -> None:
    shutil.copytree(tiny_speech("qwen3_omni"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "preprocessor_config.json").unlink()
    with CheckpointFolder(tmp_path) as checkpoint:
        with pytest.raises(ConfigError, match="preprocessor_config"):
            Eyes(checkpoint)
        section = {**checkpoint.config["thinker_config"]["audio_config"], "encoder_layers": 2}
        thinker = {**checkpoint.config["thinker_config"], "audio_config": section}
        checkpoint.config = {**checkpoint.config, "thinker_config": thinker}
        with pytest.raises(ConfigError, match="audio_tower"):
            Ears(checkpoint)
