from __future__ import annotations

import argparse
from io import StringIO
from pathlib import Path

import pytest
import soundfile
from rich.console import Console

from duologue.commands.demo.command import DemoOptions, register, report, run
from duologue.core.errors import ConfigError
from tests.unit.commands.demo.scene import good_call


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    return parser.parse_args(["demo", *arguments])


def options(out: Path) -> DemoOptions:
    return DemoOptions(questions=3, out=out, url=None, api_key=None, keep=False, verbose=False)


def test_a_good_call_is_reported_with_its_files(tmp_path: Path) -> None:
    out = StringIO()
    assert report(options(tmp_path), good_call(), Console(file=out, width=120))
    assert "FAIL" not in out.getvalue()
    samples, rate_hz = soundfile.read(tmp_path / "call.wav", dtype="int16")
    assert rate_hz == 24_000
    assert samples.shape[1] == 2
    assert (tmp_path / "call.png").stat().st_size > 0


def test_a_bad_call_says_which_check_failed_and_what_was_seen(tmp_path: Path) -> None:
    record = good_call()
    record.gap_s = 0.25
    record.answers["r1"].audio_after_interruption = 3
    out = StringIO()
    assert not report(options(tmp_path), record, Console(file=out, width=120))
    said = " ".join(out.getvalue().split())
    assert "FAIL no old audio is sent after the interruption: 3 audio deltas" in said
    assert "0.25 s of gaps inside answers" in said


@pytest.mark.parametrize("count", ["2", "99"])
def test_too_few_or_too_many_questions_are_refused(count: str) -> None:
    with pytest.raises(ConfigError, match=f"--questions {count}: give a number from 3 to"):
        run(parsed("--questions", count))


def test_a_folder_that_cannot_be_made_is_refused_before_the_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot make the folder"):
        run(parsed("--out", str(tmp_path / "file" / "x"), "--url", "localhost:1"))
