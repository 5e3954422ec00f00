from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from duologue.clients.errors import AudioDeviceError
from duologue.clients.sound_card import PortAudioCard, SoundDevice, sound_devices


class FakeStream:
    """A stream of the library; remembers its arguments."""

    def __init__(self, library: FakeLibrary, kind: str, **arguments: Any) -> None:
        if library.missing == kind:
            raise library.PortAudioError(f"Error querying device ({kind})")
        self.kind, self.arguments = kind, arguments
        self.latency = {"input": 0.01, "output": 0.03}[kind]
        self.started = self.closed = False
        library.streams.append(self)

    def start(self) -> None:
        self.started = True

    def close(self) -> None:
        self.closed = True


class FakeLibrary(ModuleType):
    """Stands in for the package ``sounddevice``."""

    class PortAudioError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("sounddevice")
        self.streams: list[FakeStream] = []
        self.missing = ""
        self.silent = False

    def RawInputStream(self, **arguments: Any) -> FakeStream:
        return FakeStream(self, "input", **arguments)

    def RawOutputStream(self, **arguments: Any) -> FakeStream:
        return FakeStream(self, "output", **arguments)

    def query_devices(self) -> list[dict[str, Any]]:
        if self.silent:
            raise self.PortAudioError("no sound")
        return [{"name": "Headset", "max_input_channels": 1, "max_output_channels": 2}]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    fake = FakeLibrary()
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return fake


def test_both_directions_run_until_they_are_closed(library: FakeLibrary) -> None:
    said: list[bytes] = []
    blocks = [b"\x01\x00" * 480, b"\x02\x00"]
    card = PortAudioCard(microphone="Headset", loudspeaker=3)
    streams = card.open(24_000, 480, said.append, lambda: blocks.pop(0))
    microphone, loudspeaker = library.streams
    assert microphone.arguments["device"] == "Headset"
    assert loudspeaker.arguments["device"] == 3
    assert microphone.started
    assert loudspeaker.started
    assert streams.output_latency_s == 0.03
    microphone.arguments["callback"](memoryview(b"ab"), 1, None, None)
    assert said == [b"ab"]
    played = bytearray(960)
    loudspeaker.arguments["callback"](played, 480, None, None)
    assert played == b"\x01\x00" * 480
    loudspeaker.arguments["callback"](played, 480, None, None)
    assert played == b"\x02\x00" + bytes(958)
    streams.close()
    assert microphone.closed
    assert loudspeaker.closed


@pytest.mark.parametrize(
    ("missing", "word"), [("input", "no microphone"), ("output", "no loudspeaker")]
)
def test_what_is_missing_is_named_with_another_way(
    library: FakeLibrary, missing: str, word: str
) -> None:
    library.missing = missing
    with pytest.raises(AudioDeviceError, match=rf"{word} .*--wav in\.wav"):
        PortAudioCard().open(24_000, 480, lambda _: None, bytes)
    assert all(stream.closed for stream in library.streams)


def test_devices_are_listed(library: FakeLibrary) -> None:
    assert sound_devices() == [SoundDevice(0, "Headset", 1, 2)]
    library.silent = True
    with pytest.raises(AudioDeviceError, match="does not answer"):
        sound_devices()


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(AudioDeviceError, match=r"pip install 'duologue\[audio\]'"):
        sound_devices()


def test_a_missing_library_below_the_package_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Finder:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "sounddevice":
                raise OSError("PortAudio library not found")

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    with pytest.raises(AudioDeviceError, match="libportaudio2"):
        sound_devices()
