from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from duologue.config import command
from duologue.core.errors import ConfigError
from tests.fakes.settings import FakeRoot


def run(*words: str, environ: dict[str, str] | None = None) -> tuple[int, list[str]]:
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers(), FakeRoot)
    lines: list[str] = []
    code = command.run(
        parser.parse_args(["config", *words]), FakeRoot, environ or {}, write=lines.append
    )
    return code, lines


def test_show_prints_each_value_with_its_origin() -> None:
    code, lines = run("show", "--door.port", "9200", environ={"DUOLOGUE_DOOR__HOST": "::1"})
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert code == 0
    assert rows["door.port"] == ["9200", "--door.port"]
    assert rows["door.host"] == ["::1", "DUOLOGUE_DOOR__HOST"]
    assert rows["door.limits.max_message_bytes"] == ["1000000", "default"]
    assert rows["door.certificate"] == ["null", "default"]
    assert rows["workshop.folders"] == ["[]", "default"]


def test_show_prints_no_secret() -> None:
    _, lines = run("show", environ={"DUOLOGUE_DOOR__API_KEYS": '["hush"]'})
    assert "hush" not in "\n".join(lines)


def test_show_refuses_what_serve_would_refuse() -> None:
    with pytest.raises(ConfigError, match="DUOLOGUE_DOR"):
        run("show", environ={"DUOLOGUE_DOR": "1"})


def test_check_judges_every_file_and_ignores_the_environment(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("door: {port: 1}\n", encoding="utf-8")
    bad.write_text("door: {port: 0}\n", encoding="utf-8")
    code, lines = run("check", str(bad), str(good), environ={"DUOLOGUE_DOR": "1"})
    assert code == command.EXIT_REFUSED
    assert lines[0].startswith(f"door.port = 0 ({bad}:1)")
    assert lines[1] == f"{good}: accepted"
    assert run("check", str(good))[0] == 0


def test_reference_prints_the_page_of_all_settings() -> None:
    code, lines = run("reference")
    assert code == 0
    assert "| `door.port` |" in lines[0]
