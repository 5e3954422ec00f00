from __future__ import annotations

import asyncio

import pytest

from duologue.clients.audio_device import AHEAD_BLOCKS, MICROPHONE_BLOCKS, AudioDevice
from duologue.clients.errors import AudioDeviceError, CallEnded, SendBufferFull
from duologue.clients.playback import Playback, Taken
from duologue.clients.sound_card import NextBlock, OnSaid, Streams

BLOCK = 480


class FakeCard:
    """A sound card whose threads are the test."""

    def __init__(self, failure: AudioDeviceError | None = None) -> None:
        self.closed = False
        self.output_latency_s = 0.01
        self.opened = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._failure = failure
        self.said: OnSaid = lambda _: None
        self.next_block: NextBlock = bytes

    def open(
        self, rate_hz: int, block_samples: int, on_said: OnSaid, next_block: NextBlock
    ) -> Streams:
        if self._failure is not None:
            raise self._failure
        assert (rate_hz, block_samples) == (24_000, BLOCK)
        self.said, self.next_block = on_said, next_block
        self._loop.call_soon_threadsafe(self.opened.set)
        return self

    def close(self) -> None:
        self.closed = True


class FakeCall:
    rate_hz = 24_000

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.playback = Playback(24_000)
        self.failure: Exception | None = None

    @property
    def has_speech(self) -> bool:
        return self.playback.waiting_samples > 0

    def send_audio(self, pcm: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        self.said.append(pcm)

    def take_audio(self, samples: int) -> Taken:
        return self.playback.take(samples)


class Scene:
    def __init__(self) -> None:
        self.card, self.call = FakeCard(), FakeCall()
        self.device = AudioDevice(self.card)

    async def __aenter__(self) -> Scene:
        self._task = asyncio.ensure_future(self.device.run(self.call))
        await self.card.opened.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


async def turn_of_the_loop() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_what_the_microphone_hears_is_sent() -> None:
    async with Scene() as scene:
        scene.card.said(b"1")
        scene.card.said(b"2")
        await turn_of_the_loop()
        assert scene.call.said == [b"1", b"2"]
    assert scene.card.closed


async def test_speech_is_queued_ahead_and_silence_is_not() -> None:
    async with Scene() as scene:
        assert scene.card.next_block() == bytes(2 * BLOCK)
        scene.call.playback.put("a", 0, b"\x01\x00" * (BLOCK * 10))
        scene.card.next_block()
        await turn_of_the_loop()
        assert scene.call.playback.heard_samples("a") == AHEAD_BLOCKS * BLOCK
        assert scene.card.next_block() == b"\x01\x00" * BLOCK
        await turn_of_the_loop()
        assert scene.call.playback.heard_samples("a") == (AHEAD_BLOCKS + 1) * BLOCK


async def test_an_interruption_takes_back_what_was_queued() -> None:
    async with Scene() as scene:
        scene.call.playback.put("a", 0, b"\x01\x00" * (BLOCK * 10))
        scene.card.next_block()
        await turn_of_the_loop()
        scene.card.next_block()
        assert scene.device.silence() == (AHEAD_BLOCKS - 1) * BLOCK
        assert scene.card.next_block() == bytes(2 * BLOCK)


async def test_what_waits_for_the_card_or_is_inside_it_was_not_heard_yet() -> None:
    async with Scene() as scene:
        await turn_of_the_loop()
        latency = round(scene.card.output_latency_s * scene.call.rate_hz)
        assert scene.device.unsounded() == latency
        scene.call.playback.put("a", 0, b"\x01\x00" * (BLOCK * 10))
        scene.card.next_block()
        await turn_of_the_loop()
        assert scene.device.unsounded() == latency + AHEAD_BLOCKS * BLOCK
        scene.card.next_block()
        assert scene.device.unsounded() == latency + (AHEAD_BLOCKS - 1) * BLOCK


async def test_while_the_loop_is_busy_the_microphone_is_bounded() -> None:
    async with Scene() as scene:
        for number in range(MICROPHONE_BLOCKS + 5):
            scene.card.said(str(number).encode())
        await turn_of_the_loop()
        assert scene.call.said[0] == b"5"
        assert len(scene.call.said) == MICROPHONE_BLOCKS


async def test_what_the_network_does_not_take_is_lost_and_counted() -> None:
    async with Scene() as scene:
        scene.call.failure = SendBufferFull("full")
        scene.card.said(b"1")
        await turn_of_the_loop()
        assert scene.device.lost_blocks == 1
        scene.call.failure = CallEnded("over")
        scene.card.said(b"2")
        await turn_of_the_loop()
        assert scene.device.lost_blocks == 1


async def test_a_machine_without_a_microphone_says_so() -> None:
    device = AudioDevice(FakeCard(AudioDeviceError("no microphone")))
    with pytest.raises(AudioDeviceError, match="no microphone"):
        await device.run(FakeCall())
