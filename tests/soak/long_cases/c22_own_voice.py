"""C22: a loudspeaker's voice in the microphone interrupts nobody; a person does."""

from __future__ import annotations

import asyncio
import time
from collections import deque

import numpy as np

from duologue.clients import ClipDevice, Taken
from duologue.clients.devices import DevicePort
from duologue.protocol.events import SpeechStarted
from duologue.protocol.session_patch import TurnDetectionPatch
from tests.soak.long_cases.people import FRAME_BYTES, Caller, Figures, calling, pcm16
from tests.soak.recorded_voice import RATE_HZ, speech

ECHO_LEVEL = 10 ** (-12 / 20)
ECHO_DELAY_MS = 180


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
