"""The long cases in real time: ``python -m tests.soak.long_cases``, all but one side by side.

``tests/cases`` holds them on a clock that a test moves. Here the same people talk with a server in
a process of its own, through its socket and our own client, for as long as it takes: C07, C08, C22,
C39, C41 and C64, about sixteen minutes together. The names are those of the catalogue of cases.

It needs a machine with a core to spare: on one that is late itself, people are answered late.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np

from duologue.clients import CallError, ClipDevice, Device, DuplexClient, Taken, Tool
from duologue.clients.client import SessionChanges
from duologue.clients.devices import DevicePort
from duologue.engines.pipeline import StageSpec
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import AudioCommitted, ErrorEvent, Event, SpeechStarted, SpeechStopped
from duologue.protocol.response_events import ResponseCreated, ResponseDone
from duologue.protocol.session_patch import TurnDetectionPatch
from tests.faults.faulty_gateway import write_pipeline
from tests.faults.server_process import ROOT, server_process
from tests.soak.recorded_voice import RATE_HZ, speech

E = TypeVar("E", bound=Event)

TURNS = 50
FRAME_BYTES = RATE_HZ * 2 // 50
VOICE_LEVEL = 0.1
FAN_DBFS, WORD_DBFS = -40.0, -26.0
ECHO_LEVEL = 10 ** (-12 / 20)
ECHO_DELAY_MS = 180
CERTAIN = 0.95
"""Probability of speech that a fan does not reach, and a word does."""

UTTERANCES = ((1000, 1400), (3200, 1000), (5600, 2200), (9400, 900))
"""Beginning and length, in a recording of twelve seconds."""

Figures = Mapping[str, float]
Case = Callable[[str], Awaitable[Figures]]


# The server


def a_config(folder: Path) -> dict[str, Any]:
    """One model for each kind of answer; whatever is loud is speech."""
    tones = {"ms_per_character": 40}
    stages = (("vad", "energy_vad", {}), ("scripted", "tone", tones), ("reader", "read_aloud", {}))
    env = {"PYTHONPATH": f"{folder}:{ROOT}"}
    files = [
        str(
            write_pipeline(
                folder,
                StageSpec(name=name, runner=runner, max_jobs=64, env=env, settings=settings),
            )
        )
        for name, runner, settings in stages
    ]
    long = "I am still looking into it, which takes rather long, as you can hear. " * 12
    looking_up = [
        {"calls": [{"name": "weather", "arguments": '{"city":"Nice"}'}]},
        {"line": long},
        {"line": long},
        {"line": "So: {outputs}."},
    ]
    options: dict[str, dict[str, Any]] = {
        "short": {"lines": ["A short answer to each turn."]},
        "long": {"lines": [long]},
        "reader": {"lines": ["Read aloud."], "pipeline": "reader"},
        "caller": {"turns": looking_up},
    }
    return {
        "models": [
            {"name": name, "plugin": "scripted", "options": each} for name, each in options.items()
        ],
        "engine": {"pipelines": [], "pipeline_files": files},
        "gateway": {"port": 0, "drain_timeout_s": 5},
        "sessions": {"listening": {"end_of_turn": None, "asr": None}},
        "telemetry": {"log_level": "error"},
    }


def install_voice(folder: Path) -> None:
    """Make a package of the voice, as far as finding it is concerned."""
    metadata = folder / "recorded_voice-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: recorded-voice\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[duologue.runners]\nread_aloud = tests.soak.recorded_voice:VOICE\n"
    )


# The people


class Caller:
    """One call, with a note of when each event came."""

    def __init__(self, call: DuplexClient) -> None:
        self.call = call
        self.noted: list[tuple[float, Event]] = []

    async def listen(self) -> None:
        """Note all that comes."""
        async for event in self.call.events():
            assert isinstance(event, Event), event
            if isinstance(event, ErrorEvent):
                # Whoever asks while another answer begins is told so, and asks again.
                assert event.error.code == ErrorCode.RESPONSE_ACTIVE, event
            self.noted.append((time.monotonic(), event))

    def of(self, kind: type[E]) -> list[E]:
        return [event for _, event in self.noted if isinstance(event, kind)]

    def times(self, kind: type[Event]) -> list[float]:
        return [at for at, event in self.noted if isinstance(event, kind)]

    async def until(self, kind: type[Event], count: int, timeout_s: float = 30) -> None:
        """Wait until so many have come."""
        await self.call.wait_until(lambda: len(self.times(kind)) >= count, timeout_s)

    def ends(self) -> list[str]:
        """How each answer ended."""
        return [event.response.status for event in self.of(ResponseDone)]


@asynccontextmanager
async def calling(
    url: str, model: str, device: Device | None, **changes: Any
) -> AsyncIterator[Caller]:
    """Hold a call; any error that the server tells of fails the case."""
    given: SessionChanges = {"turn_detection": "server_vad", **changes}  # type: ignore[typeddict-item]
    async with (
        DuplexClient.connect(url, model=model, device=device, **given) as call,
        asyncio.TaskGroup() as group,
    ):
        caller = Caller(call)
        listening = group.create_task(caller.listen())
        yield caller
        listening.cancel()


def voice(ms: int) -> bytes:
    """A buzz with the level of speech."""
    at = np.arange(RATE_HZ * ms // 1000) / RATE_HZ
    return pcm16(VOICE_LEVEL * np.sqrt(2) * np.sin(2 * np.pi * 220 * at))


def quiet(ms: int) -> bytes:
    return bytes(RATE_HZ * ms // 1000 * 2)


def fan(ms: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return 10 ** (FAN_DBFS / 20) * np.random.default_rng(1).standard_normal(RATE_HZ * ms // 1000)


def pcm16(samples: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


# The cases


async def c07_calm(url: str) -> Figures:
    """Fifty turns, each after the answer before and some seconds more, are fifty answers."""
    device, chance = ClipDevice(), random.Random(7)
    async with calling(url, "short", device) as caller:
        for number in range(1, TURNS + 1):
            device.say(voice(1500) + quiet(900))
            await caller.until(ResponseDone, number)
            await asyncio.sleep(chance.uniform(0, 5))
        assert caller.ends() == ["completed"] * TURNS, caller.ends()
        return _in_turn(caller)


async def c07_over_answers(url: str) -> Figures:
    """Fifty turns that each end inside the answer before."""
    device = ClipDevice()
    async with calling(url, "long", device) as caller:
        for number in range(1, TURNS + 1):
            device.say(voice(1500) + quiet(900))
            await caller.until(ResponseCreated, number)
            await caller.call.wait_until(lambda: caller.call.playback.speaking is not None)
            await asyncio.sleep(0.4)
        await caller.until(ResponseDone, TURNS, 60)
        assert caller.ends() == ["cancelled"] * (TURNS - 1) + ["completed"], caller.ends()
        return _in_turn(caller)


def _in_turn(caller: Caller) -> Figures:
    """Check that each turn was heard once, and answered once, soon."""
    commits, answers = caller.times(AudioCommitted), caller.times(ResponseCreated)
    assert len(caller.of(SpeechStarted)) == len(commits) == len(answers) == TURNS
    waits = [answer - commit for commit, answer in zip(commits, answers, strict=True)]
    assert 0 <= min(waits) <= max(waits) <= 0.5, waits
    return {
        "turns": TURNS,
        "created_after_ms": round(median(waits) * 1000, 1),
        "worst_ms": round(max(waits) * 1000, 1),
    }


async def c08_speech_that_never_ends(url: str) -> Figures:
    """Ninety seconds of voiced noise are one turn, ended at the limit; then all is as before."""
    device = ClipDevice()
    async with calling(url, "short", device) as caller:
        noise = np.frombuffer(voice(90_000), "<i2") / 32768 + fan(90_000)
        device.say(pcm16(noise))
        await caller.until(AudioCommitted, 1, 80)
        await caller.call.wait_until(lambda: not device.speaking, 60)
        (started,), (stopped,) = caller.of(SpeechStarted), caller.of(SpeechStopped)
        turn_ms = stopped.audio_end_ms - started.audio_start_ms
        assert abs(turn_ms - 60_000) < 100, turn_ms
        await asyncio.sleep(1)
        device.say(voice(1500) + quiet(900))
        await caller.until(ResponseDone, 2)
        assert caller.ends() == ["completed"] * 2
        assert len(caller.of(AudioCommitted)) == 2
        return {"turn_ms": turn_ms}


class Speakerphone(ClipDevice):
    """Its microphone hears its loudspeaker, more quietly and somewhat later."""

    def __init__(self) -> None:
        super().__init__(on_frame=self._play)
        delay_frames = ECHO_DELAY_MS // 20
        self._air: deque[bytes] = deque([bytes(FRAME_BYTES)] * delay_frames)

    async def run(self, call: DevicePort) -> None:
        await super().run(_Room(call, self._air))

    def _play(self, _said: bytes, taken: Taken) -> None:
        self._air.append(taken.pcm)


class _Room:
    """A call as the device sees it; what is said comes with what is in the air."""

    def __init__(self, call: DevicePort, air: deque[bytes]) -> None:
        self._call = call
        self._air = air
        self.take_audio = call.take_audio

    @property
    def rate_hz(self) -> int:
        return self._call.rate_hz

    @property
    def has_speech(self) -> bool:
        return self._call.has_speech

    def send_audio(self, pcm: bytes) -> None:
        said = np.frombuffer(pcm, "<i2") / 32768
        echo = np.frombuffer(self._air.popleft(), "<i2") / 32768
        self._call.send_audio(pcm16(said + ECHO_LEVEL * echo))


async def c22_own_voice(url: str) -> Figures:
    """Ten minutes of its own voice interrupt nobody; a person does, within 700 ms."""
    device, answers = Speakerphone(), 0
    by_hand = TurnDetectionPatch(type="server_vad", create_response=False)
    ends = time.monotonic() + 600
    async with calling(url, "reader", device, turn_detection=by_hand) as caller:
        while time.monotonic() < ends:
            await _read_aloud(caller)
            await caller.call.wait_until_quiet()
            answers += 1
        assert caller.ends() == ["completed"] * answers, caller.ends()
        assert caller.of(SpeechStarted) == []
        await _read_aloud(caller)
        await asyncio.sleep(2)
        person = np.frombuffer(speech("0930", "0870"), "<i2")
        person = person[int(np.argmax(np.abs(person) > 650)) :]
        began = device.started_at + device.say(person.tobytes()) / RATE_HZ
        await caller.until(SpeechStarted, 1)
        stopped_s = caller.times(SpeechStarted)[0] - began
        await caller.call.wait_until_quiet()
        assert stopped_s <= 0.7, stopped_s
        kept = caller.call.playback.gap_samples / RATE_HZ
        return {
            "answers": answers,
            "interrupted_after_ms": round(stopped_s * 1000),
            "gaps_ms": round(kept * 1000),
        }


async def _read_aloud(caller: Caller) -> None:
    await caller.call.create_response()
    await caller.call.wait_until(lambda: caller.call.playback.speaking is not None)


async def c39_at_half_speed(url: str) -> Figures:
    return await _four_turns(url, 0.5)


async def c39_ten_times_as_fast(url: str) -> Figures:
    return await _four_turns(url, 10)


async def _four_turns(url: str, speed: float) -> Figures:
    """Turns are found in audio time, at any speed."""
    async with calling(url, "short", None) as caller:
        await _send(caller, recording(), speed)
        await caller.until(SpeechStopped, 4)
        starts = [event.audio_start_ms for event in caller.of(SpeechStarted)]
        stops = [event.audio_end_ms for event in caller.of(SpeechStopped)]
        off = [abs(a - max(0, b - 300)) for a, (b, _) in zip(starts, UTTERANCES, strict=True)]
        off += [abs(a - b - ms) for a, (b, ms) in zip(stops, UTTERANCES, strict=True)]
        assert max(off) <= 30, (starts, stops)
        return {"turns": len(starts), "worst_ms": max(off)}


async def c39_a_gap(url: str) -> Figures:
    """Three seconds without a packet are no silence."""
    async with calling(url, "short", None) as caller:
        await _send(caller, quiet(500) + voice(600))
        await asyncio.sleep(3)
        assert caller.of(SpeechStopped) == []
        await _send(caller, voice(600) + quiet(800))
        await caller.until(SpeechStopped, 1)
        (stopped,) = caller.of(SpeechStopped)
        assert abs(stopped.audio_end_ms - 1700) <= 30, stopped
        assert len(caller.of(SpeechStarted)) == 1
        return {"turns": 1, "end_ms": stopped.audio_end_ms}


async def _send(caller: Caller, pcm: bytes, speed: float = 1.0) -> None:
    began = time.monotonic()
    for n, start in enumerate(range(0, len(pcm), FRAME_BYTES), 1):
        caller.call.send_audio(pcm[start : start + FRAME_BYTES])
        await asyncio.sleep(max(0.0, began + n * 0.020 / speed - time.monotonic()))


def recording() -> bytes:
    parts, at = [], 0
    for start, length in UTTERANCES:
        parts += [quiet(start - at), voice(length)]
        at = start + length
    return b"".join((*parts, quiet(12_000 - at)))


async def c41_a_fan(url: str) -> Figures:
    """Five minutes of a fan are nobody; a short word over it is a turn."""
    device = ClipDevice()
    certain = TurnDetectionPatch(type="server_vad", threshold=CERTAIN)
    async with calling(url, "short", device, turn_detection=certain) as caller:
        device.say(pcm16(fan(300_000)))
        await caller.call.wait_until(lambda: not device.speaking, 330)
        assert caller.of(SpeechStarted) == []
        at = np.arange(RATE_HZ // 5) / RATE_HZ
        over = fan(2000)
        over[12_000 : 12_000 + len(at)] += (
            10 ** (WORD_DBFS / 20) * np.sqrt(2) * np.sin(2 * np.pi * 220 * at)
        )
        device.say(pcm16(over))
        await caller.until(ResponseDone, 1)
        assert len(caller.of(SpeechStarted)) == len(caller.of(AudioCommitted)) == 1
        return {"seconds_of_fan": 300, "turns": 1}


async def c64_a_slow_tool(url: str) -> Figures:
    """A function blocks for 30 s while the person talks on and interrupts twice."""
    runs: list[str] = []

    def weather(city: str) -> str:
        runs.append(city)
        time.sleep(30)
        return f"sunny in {city}"

    device = ClipDevice()
    slow = Tool(weather, timeout_s=60)
    async with calling(url, "caller", device, tools=[slow]) as caller:
        answers = caller.call.responses()
        device.say(voice(500))
        assert [each.name for each in (await (await anext(answers)).finished()).calls] == [
            "weather"
        ]
        called = time.monotonic()
        for number in range(2):
            await asyncio.sleep(4)
            device.say(voice(700))
            await caller.until(ResponseCreated, number + 2)
            await caller.call.wait_until(lambda: caller.call.playback.speaking is not None)
            await anext(answers)
        result = await (await anext(answers)).finished()
        waited_s = time.monotonic() - called
        assert result.text == "So: sunny in Nice.", result.text
        assert runs == ["Nice"]
        assert waited_s >= 30
        assert len(caller.of(SpeechStarted)) == 3
        gaps_ms = caller.call.playback.gap_samples / RATE_HZ * 1000
        assert gaps_ms <= 100, gaps_ms
        return {"answered_after_s": round(waited_s, 1), "gaps_ms": round(gaps_ms)}


CASES: Sequence[Case] = (
    c07_calm,
    c07_over_answers,
    c08_speech_that_never_ends,
    c22_own_voice,
    c39_at_half_speed,
    c39_ten_times_as_fast,
    c39_a_gap,
    c41_a_fan,
    c64_a_slow_tool,
)


async def run(chosen: Sequence[Case]) -> int:
    """Let all of them call at once; returns the exit status."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install_voice(folder)
        async with server_process(folder, a_config(folder)) as server:
            beside = [case for case in chosen if case is not c22_own_voice]
            results = await asyncio.gather(*(_judge(case, server.url) for case in beside))
            # An echo is known by its delay, so nobody else's work may come into its way.
            results += [await _judge(c, server.url) for c in chosen if c is c22_own_voice]
    failed = results.count(False)
    _say(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


async def _judge(case: Case, url: str) -> bool:
    began, name = time.monotonic(), case.__name__  # type: ignore[attr-defined]
    try:
        figures = await case(url)
    except (AssertionError, CallError, TimeoutError, ExceptionGroup):
        _say(f"FAILED {name}:\n{traceback.format_exc()}")
        return False
    _say(f"passed {name} in {time.monotonic() - began:.0f} s: {json.dumps(figures)}")
    return True


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.long_cases", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name begins so, as c22")
    args = parser.parse_args(arguments)
    return asyncio.run(run([case for case in CASES if case.__name__.startswith(args.only)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
