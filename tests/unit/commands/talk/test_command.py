from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import soundfile
from rich.console import Console

from duologue.app import running_app
from duologue.clients.devices import DevicePort
from duologue.clients.errors import AudioDeviceError, ServerUnreachable
from duologue.commands.talk.command import (
    TalkOptions,
    register,
    run,
    talk,
    talk_through_file,
)
from duologue.commands.talk.sound_files import write_speech
from duologue.core.errors import ConfigError
from tests.fakes.small_gateway import small_settings
from tests.fakes.talking_gateway import SHORT_LINE, speech, talking_settings

OPTIONS = TalkOptions(url="", api_key=None, model=None, instructions="Be kind.", wav=None, out=None)


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    return parser.parse_args(["talk", *arguments])


@pytest.fixture
def question(tmp_path: Path) -> Path:
    path = tmp_path / "in.wav"
    write_speech(path, [speech(400)])
    return path


async def test_a_file_is_said_and_its_answer_kept(tmp_path: Path, question: Path) -> None:
    answer = tmp_path / "out.wav"
    out = StringIO()
    async with running_app(talking_settings(tmp_path, SHORT_LINE)) as app:
        options = replace(OPTIONS, url=app.url, wav=question, out=answer)
        code = await talk_through_file(options, question, Console(file=out))
    assert code == 0
    samples, rate_hz = soundfile.read(answer, dtype="int16")
    assert rate_hz == 24_000
    assert abs(samples[: 24 * 400]).max() == 0
    heard_ms = (abs(samples) > 1000).sum() / 24
    assert heard_ms > 0.5 * 40 * len(SHORT_LINE)
    assert "what was heard is in" in out.getvalue()


async def test_a_turn_is_ended_by_hand_where_the_server_detects_none(question: Path) -> None:
    async with running_app(small_settings()) as app:
        options = replace(OPTIONS, url=app.url, wav=question, model="scripted")
        code = await talk_through_file(options, question, Console(file=StringIO()))
    assert code == 0


class FakeHeadset:
    """A device that works until it is unplugged."""

    def __init__(self) -> None:
        self.unplugged = asyncio.Event()

    async def run(self, call: DevicePort) -> None:
        call.send_audio(bytes(960))
        await self.unplugged.wait()
        raise AudioDeviceError("the headset is gone")

    def silence(self) -> int:
        return 0


class Screen(StringIO):
    """Calls somebody when something is written."""

    def __init__(self, on_write: Callable[[], None]) -> None:
        super().__init__()
        self._on_write = on_write

    def write(self, text: str) -> int:
        self._on_write()
        return super().write(text)


async def test_a_headset_that_is_unplugged_ends_the_call_with_a_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with running_app(small_settings()) as app:
        device = FakeHeadset()
        screen = Screen(device.unplugged.set)
        options = replace(OPTIONS, url=app.url, instructions=None)
        code = await talk(options, device, Console(file=screen))
    assert code == 1
    assert "Ctrl-C hangs up" in screen.getvalue()
    assert "the headset is gone" in capsys.readouterr().err


async def test_without_a_server_it_says_how_to_start_one(unused_tcp_port: int) -> None:
    options = replace(OPTIONS, url=f"127.0.0.1:{unused_tcp_port}")
    with pytest.raises(ServerUnreachable, match="duologue serve"):
        await talk(options, FakeHeadset(), Console(file=StringIO()))


def test_without_sound_it_says_so_before_it_looks_for_a_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(AudioDeviceError, match=r"duologue\[audio\].*--wav"):
        run(parsed("127.0.0.1:1"))


def test_an_answer_is_kept_only_of_a_file() -> None:
    with pytest.raises(ConfigError, match="needs --wav"):
        run(parsed("--out", "x.wav"))


def test_the_local_server_is_the_default() -> None:
    assert parsed().url == "ws://localhost:8080/v1/realtime"
