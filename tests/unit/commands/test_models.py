from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from duologue.commands import models
from duologue.core.errors import ConfigError


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    models.register(parser.add_subparsers())
    return parser.parse_args(["models", *arguments])


def test_the_cache_of_the_settings_is_listed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUOLOGUE_ARTIFACTS__CACHE_DIR", str(tmp_path))
    assert models.run(parsed("list")) == 0
    assert str(tmp_path) in capsys.readouterr().out


def test_a_setting_that_cannot_be_used_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOLOGUE_ARTIFACTS__RETRIES", "many")
    with pytest.raises(ConfigError, match="retries"):
        models.run(parsed("list"))
