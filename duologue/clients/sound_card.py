"""The sound card, through PortAudio: the one module that knows the ``sounddevice`` package.

It is imported when a call begins, and only then: the plain SDK does without it. This module must
not know calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from duologue.clients.errors import AudioDeviceError
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.installation import install_command

OTHER_WAYS = "Without one, use files: duologue talk --wav in.wav --out out.wav"

OnSaid = Callable[[bytes], None]
"""Takes a block from the microphone; called in a thread of the sound card's."""

NextBlock = Callable[[], bytes]
"""Returns the block to be played next; called in a thread of the sound card's, must not wait."""


@dataclass(frozen=True, slots=True)
class SoundDevice:
    """A device that PortAudio knows."""

    index: int
    name: str
    inputs: int
    outputs: int


class Streams(Protocol):
    """A microphone and a loudspeaker that run."""

    @property
    def output_latency_s(self) -> float:
        """How long a block takes from ``NextBlock`` until it is heard."""
        ...

    def close(self) -> None:
        """Stop both. Blocks for a moment."""
        ...


class SoundCard(Protocol):
    """Where microphones and loudspeakers come from."""

    def open(
        self, rate_hz: int, block_samples: int, on_said: OnSaid, next_block: NextBlock
    ) -> Streams:
        """Start a microphone and a loudspeaker. Blocks for a moment.

        Raises:
            AudioDeviceError: There is none, or it cannot do what is asked.
        """
        ...


class PortAudioCard:
    """The real one.

    Args:
        microphone: Index or part of the name; the system's default without one.
        loudspeaker: The same.
    """

    def __init__(
        self, microphone: int | str | None = None, loudspeaker: int | str | None = None
    ) -> None:
        self._microphone = microphone
        self._loudspeaker = loudspeaker

    def open(
        self, rate_hz: int, block_samples: int, on_said: OnSaid, next_block: NextBlock
    ) -> Streams:
        """Start both directions, s16le mono."""
        library = load_portaudio()

        def said(data: Any, _frames: int, _time: Any, _status: Any) -> None:
            on_said(bytes(data))

        def play(data: Any, frames: int, _time: Any, _status: Any) -> None:
            block = next_block()
            size = frames * SAMPLE_BYTES
            data[:size] = block if len(block) == size else block[:size].ljust(size, b"\0")

        shape = {
            "samplerate": rate_hz,
            "blocksize": block_samples,
            "channels": 1,
            "dtype": "int16",
            "latency": "low",
        }
        opened: list[Any] = []
        try:
            for make, device, callback in (
                (library.RawInputStream, self._microphone, said),
                (library.RawOutputStream, self._loudspeaker, play),
            ):
                stream = make(device=device, callback=callback, **shape)
                opened.append(stream)
                stream.start()
        except (library.PortAudioError, ValueError) as exc:
            for stream in opened:
                stream.close()
            what = "loudspeaker" if opened else "microphone"
            raise AudioDeviceError(f"no {what} can be used: {exc}. {OTHER_WAYS}") from exc
        return _PortAudioStreams(opened)


class _PortAudioStreams:
    def __init__(self, streams: list[Any]) -> None:
        self._streams = streams

    @property
    def output_latency_s(self) -> float:
        return float(self._streams[-1].latency)

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


def load_portaudio() -> ModuleType:
    """Import ``sounddevice``.

    Raises:
        AudioDeviceError: The package or the library below it is missing.
    """
    try:
        import sounddevice
    except ImportError as exc:
        raise AudioDeviceError(
            "microphone and loudspeaker need one more package: "
            f"{install_command('duologue[audio]')}. "
            f"{OTHER_WAYS}"
        ) from exc
    except OSError as exc:
        raise AudioDeviceError(
            "the PortAudio library is missing (Debian, Ubuntu: apt-get install libportaudio2). "
            f"{OTHER_WAYS}"
        ) from exc
    assert isinstance(sounddevice, ModuleType)
    return sounddevice


def sound_devices() -> list[SoundDevice]:
    """Return the devices of this machine.

    Raises:
        AudioDeviceError: PortAudio is not there, or cannot tell.
    """
    library = load_portaudio()
    try:
        found = library.query_devices()
    except library.PortAudioError as exc:
        raise AudioDeviceError(f"the sound system does not answer: {exc}. {OTHER_WAYS}") from exc
    return [
        SoundDevice(index, each["name"], each["max_input_channels"], each["max_output_channels"])
        for index, each in enumerate(found)
    ]
