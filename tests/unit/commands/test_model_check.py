from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from duologue.artifacts.errors import ArtifactMissing
from duologue.artifacts.settings import ArtifactSettings
from duologue.commands import model_check
from duologue.core.errors import ConfigError


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    model_check.register(parser.add_subparsers(required=True))
    return parser.parse_args(["check", *words])


def settings(tmp_path: Path) -> ArtifactSettings:
    return ArtifactSettings(cache_dir=tmp_path / "cache", folders=(tmp_path,))


def test_the_bundled_question_is_there() -> None:
    assert parsed("personaplex").wav.is_file()


@pytest.mark.parametrize("name", ["no_such_pipeline", "vad"])
def test_what_is_no_lockstep_model_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=name):
        model_check.run(parsed(name), settings(tmp_path))


@pytest.mark.parametrize(
    ("name", "login"), [("personaplex", "hf auth login"), ("moshi", "CC-BY-4.0")]
)
def test_weights_that_are_not_here_are_told_of_with_all_steps(
    name: str, login: str, tmp_path: Path
) -> None:
    with pytest.raises(ArtifactMissing, match=re.escape(login)) as caught:
        model_check.run(parsed(name), settings(tmp_path))
    assert re.search(r"hf download \S+ --revision [0-9a-f]{40} ", caught.value.message)
