from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from duologue.app import running_app
from duologue.commands.loadtest.caller import Clip
from duologue.commands.loadtest.command import (
    LoadOptions,
    checked,
    hold_all,
    load_clip,
    register,
    run,
)
from duologue.commands.talk.sound_files import write_speech
from duologue.core.clock import SystemClock
from duologue.core.errors import ConfigError
from tests.fakes.small_gateway import small_settings
from tests.fakes.talking_gateway import speech


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    return parser.parse_args(["loadtest", *arguments])


def test_the_defaults_are_small_and_stay_on_this_machine() -> None:
    options = checked(parsed(), "key")
    assert options == LoadOptions("ws://localhost:8080/v1/realtime", 4, 30.0, "key", None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wss://voice.example"], "--allow-remote"),
        (["--sessions", "0"], "from 1 to 1000"),
        (["--sessions", "1001"], "from 1 to 1000"),
        (["--seconds", "0"], "up to 3600"),
        (["--seconds", "1e9"], "up to 3600"),
    ],
)
def test_what_is_out_of_bounds_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        checked(parsed(*arguments), None)


def test_another_machine_is_loaded_only_on_purpose() -> None:
    options = checked(parsed("wss://voice.example", "--allow-remote"), None)
    assert options.url == "wss://voice.example/v1/realtime"


def test_without_a_file_callers_say_a_bundled_question() -> None:
    clip = load_clip(None)
    assert 1 < clip.speech_until_s <= clip.length_s < 5


def test_a_silent_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "silent.wav"
    write_speech(path, [bytes(4800)])
    with pytest.raises(ConfigError, match="holds no sound"):
        load_clip(path)


async def test_all_calls_are_held_at_once_and_end_by_themselves() -> None:
    clip = Clip(speech(100), 0.1)
    async with running_app(small_settings()) as app:
        options = LoadOptions(app.url, 3, 0.3, None, "echo")
        results = await hold_all(options, clip, SystemClock())
        assert len(app.sessions) == 0
    assert [result.errors for result in results] == [[], [], []]
    assert all(result.connect_s is not None for result in results)


def test_a_test_against_nobody_fails_and_says_why(
    capsys: pytest.CaptureFixture[str], unused_tcp_port: int, tmp_path: Path
) -> None:
    path = tmp_path / "tone.wav"
    write_speech(path, [speech(100)])
    url = f"127.0.0.1:{unused_tcp_port}"
    code = run(parsed(url, "--sessions", "1", "--seconds", "0.2", "--wav", str(path)))
    assert code == 1
    assert "duologue serve" in capsys.readouterr().out
