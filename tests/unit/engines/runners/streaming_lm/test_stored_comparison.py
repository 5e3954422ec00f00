"""The command, on a tiny model of noise in the true file format, from its files to its words."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import msgspec
import numpy as np
import pytest
import soundfile
import torch
from rich.console import Console

from duologue.artifacts.settings import ArtifactSettings
from duologue.commands import model_check
from duologue.commands.demo.lockstep import FOLDER, pipeline
from duologue.core.errors import EngineError
from duologue.engines.runners.streaming_lm.comparison import MODES
from duologue.engines.runners.streaming_lm.random_model import write_random_model

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    made = tmp_path_factory.mktemp("models")
    write_random_model(made / FOLDER)
    (made / "pipeline.yaml").write_bytes(msgspec.json.encode(pipeline()))
    noise = np.random.default_rng(1).standard_normal(8 * 1920) / 8
    soundfile.write(made / "person.wav", noise, 24_000)
    return made


def check(folder: Path, *words: str) -> str:
    parser = argparse.ArgumentParser()
    model_check.register(parser.add_subparsers(required=True))
    arguments = ["check", str(folder / "pipeline.yaml"), "--device", "cpu", *words]
    arguments += ["--wav", str(folder / "person.wav")]
    shown = io.StringIO()
    settings = ArtifactSettings(cache_dir=folder / "cache", folders=(folder,))
    console = Console(file=shown, width=160)
    assert model_check.run(parser.parse_args(arguments), settings, console) == 0
    return shown.getvalue()


def test_every_mode_has_its_line_and_nothing_is_claimed(folder: Path) -> None:
    shown = check(folder, "--voice", "hiss", "--instructions", "You hum.")
    for mode in MODES:
        assert f"{mode.name}: another likeliest word piece at" in shown
    assert "Judged at 7 frames of a call with person.wav, against bfloat16" in shown
    assert "no evidence of quality exists without real weights" in shown
    assert shown.count(" dB ") >= 2


def test_a_voice_that_is_not_there_is_refused_by_name(folder: Path) -> None:
    with pytest.raises(EngineError, match="'growl'; there are hiss, hum"):
        check(folder, "--voice", "growl")
