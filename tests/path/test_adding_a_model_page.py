"""The code of `docs/adding-a-model.md` is run, linted, and does what the page says."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from duologue.app import running_app
from duologue.cli import main
from duologue.clients import DuplexClient
from duologue.config import load
from duologue.protocol.commands import CreateResponse
from duologue.protocol.response_config import ResponseParams
from duologue.protocol.response_events import AudioDelta, ResponseDone
from duologue.settings import Settings
from tests.fakes.call import SPEECH, FakeCall
from tests.fakes.engine import FakeEngine

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/adding-a-model.md").read_text()
BLOCK = re.compile(
    r"^```(?:python|yaml)\n# (\S+\.(?:py|yaml))[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL
)
FILES = dict(BLOCK.findall(PAGE))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of the page, importable as an installed one is."""
    (tmp_path / "duologue_parrot").mkdir()
    (tmp_path / "duologue_parrot/__init__.py").write_text("")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("duologue_parrot")]:
        del sys.modules[name]


def module(name: str) -> ModuleType:
    return importlib.import_module(f"duologue_parrot.{name}")


def make(name: str) -> Any:
    return module(name).create({})


def test_the_page_has_all_its_files() -> None:
    assert set(FILES) == {
        "duologue_parrot/parrot.py",
        "duologue_parrot/repeater.py",
        "duologue_parrot/shout.py",
        "test_repeater.py",
        "parrot.yaml",
        "shout.yaml",
        "shouter.yaml",
    }


def test_the_code_is_written_as_ours_is(folder: Path) -> None:
    rules = ["--config", str(ROOT / "pyproject.toml"), "--ignore", "D104,I001"]
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", *rules]
    found = subprocess.run(
        [*command, str(folder / "duologue_parrot")], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout


def test_the_parrot_says_back_what_it_hears_and_leaves_others_alone(folder: Path) -> None:
    call = FakeCall(make("parrot"), FakeEngine(pipelines=()))
    call.say(10)
    call.send(CreateResponse(response=ResponseParams(conversation="none")))
    call.say(10)
    assert SPEECH * 15 in b"".join(delta.delta for delta in call.client.of(AudioDelta))
    (done,) = call.client.of(ResponseDone)
    assert done.response.status == "completed", "the one out of band, at once"


def test_the_test_of_the_page_passes(folder: Path) -> None:
    names: dict[str, Any] = {}
    exec(FILES["test_repeater.py"], names)
    names["test_a_turn_comes_back"]()


def test_the_repeater_forgets_what_is_old(folder: Path) -> None:
    repeater = module("repeater")
    state = repeater.State()
    call = FakeCall(repeater.Repeater(), FakeEngine(pipelines=("vad",)))
    call.say(1000)
    call.hush(40)
    said = b"".join(delta.delta for delta in call.client.of(AudioDelta))
    assert len(said) <= repeater.KEPT_BYTES
    assert not state.heard


def settings_of(path: Path) -> Settings:
    """The page's configuration, on a free port; its plugins are named by their place."""
    given = yaml.safe_load(path.read_text())
    for model in given["models"]:
        if ":" not in model["plugin"]:
            model["plugin"] = f"duologue_parrot.{model['plugin']}:create"
    path.write_text(yaml.safe_dump({**given, "gateway": {"port": 0}}))
    return load(Settings, environ={}, config_file=path).settings


@pytest.fixture
def shouting(folder: Path) -> Settings:
    return settings_of(folder / "shouter.yaml")


async def test_the_stage_of_the_page_answers_a_real_call(
    folder: Path, shouting: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{ROOT}")  # for the worker, a child
    async with running_app(shouting) as app, DuplexClient.connect(app.url) as call:
        assert (await call.ask("anything")).text == "HELLO!!!"


def test_the_configuration_of_the_parrot_is_accepted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "parrot.yaml"
    settings_of(path)
    assert main(["config", "check", str(path)]) == 0
    path.write_text(path.read_text().replace("mute", "loud"))
    assert main(["config", "check", str(path)]) != 0
    assert "loud (plugin parrot) is not a setting" in capsys.readouterr().out
