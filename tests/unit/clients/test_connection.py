from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from duologue.clients.connection import Connection, one_of
from duologue.clients.devices import DevicePort
from duologue.clients.errors import (
    AudioDeviceError,
    CallEnded,
    CommandRefused,
    ConnectionLost,
    NotRealtimeServer,
    ServerSilent,
)
from duologue.core.errors import ProtocolError
from duologue.core.ids import id_maker
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.commands import CancelResponse, ClearAudio, TruncateItem
from duologue.protocol.events import AudioCleared, AudioCommitted
from tests.fakes.clock import FakeClock
from tests.fakes.server import FakeAnswer, FakeTransport, greeting, refusal, speech_started


class FakeDevice:
    """Holds the port; ``unplayed`` is what it throws away at an interruption."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.call: DevicePort | None = None
        self.unplayed = 0
        self._failure = failure

    async def run(self, call: DevicePort) -> None:
        self.call = call
        if self._failure is not None:
            raise self._failure
        await asyncio.Event().wait()

    def silence(self) -> int:
        return self.unplayed

    def unsounded(self) -> int:
        return self.unplayed


class Scene:
    """A connection, both of whose ends belong to the test."""

    def __init__(self, device: FakeDevice | None = None, timeout_s: float = 5.0) -> None:
        self.clock = FakeClock(100.0)
        self.transport = FakeTransport(greeting())
        self.connection = Connection(self._open, device, self.clock, timeout_s, id_maker())

    async def _open(self) -> FakeTransport:
        return self.transport

    async def __aenter__(self) -> Scene:
        await self.connection.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.connection.leave()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_events_reach_the_machine_and_commands_the_server() -> None:
    async with Scene() as scene:
        assert scene.connection.machine.last_seq == 1
        scene.connection.send(ClearAudio())
        scene.connection.send_audio(b"12")
        await settle()
        assert scene.transport.sent == [ClearAudio(event_id="client_1"), AppendAudio(audio=b"12")]
    assert scene.transport.closed


async def test_a_command_is_answered_or_refused() -> None:
    async with Scene() as scene:
        connection = scene.connection
        async with asyncio.TaskGroup() as group:
            answered = group.create_task(connection.ask((ClearAudio(),), one_of(AudioCleared)))
            refused = group.create_task(
                caught(connection.ask((ClearAudio(),), one_of(AudioCommitted)))
            )
            await settle()
            scene.transport.say(refusal("client_2"), AudioCleared())
        assert answered.result() == AudioCleared()
        assert isinstance(refused.result(), CommandRefused)


async def test_a_server_that_says_nothing_is_named() -> None:
    async with Scene(timeout_s=0.01) as scene:
        with pytest.raises(ServerSilent, match=r"not answered input_audio_buffer.clear for 0.01 s"):
            await scene.connection.ask((ClearAudio(),), one_of(AudioCleared))


async def test_a_server_that_does_not_greet_is_none_of_this_dialect() -> None:
    scene = Scene(timeout_s=0.01)
    scene.transport = FakeTransport()
    with pytest.raises(NotRealtimeServer, match="not answered the connection"):
        await scene.connection.begin()
    assert scene.transport.closed


async def test_a_first_message_that_cannot_be_read_is_of_another_dialect() -> None:
    scene = Scene()
    scene.transport = FakeTransport()
    scene.transport.say(ProtocolError("what?"))
    with pytest.raises(NotRealtimeServer, match="first message is not of this dialect"):
        await scene.connection.begin()


async def test_a_later_message_that_cannot_be_read_is_passed_by() -> None:
    async with Scene() as scene:
        scene.transport.say(ProtocolError("what?"), AudioCleared())
        stream = scene.connection.streams.from_now()
        assert await anext(stream) == AudioCleared()


async def test_without_a_device_speech_is_heard_as_time_passes() -> None:
    async with Scene() as scene:
        connection, answer = scene.connection, FakeAnswer("a")
        scene.transport.say(answer.created(), answer.text("one two"), answer.audio(1000))
        await connection.wait_until(lambda: connection.has_speech, 1.0)
        scene.clock.advance(0.4)
        scene.transport.say(speech_started("q"))
        await settle()
        (cut,) = scene.transport.of(TruncateItem)
        assert isinstance(cut, TruncateItem)
        assert cut.audio_end_ms == 400


async def test_a_condition_on_what_is_heard_is_seen_while_nothing_arrives() -> None:
    async with Scene() as scene:
        connection, answer = scene.connection, FakeAnswer("a")
        scene.transport.say(answer.created(), answer.audio(1000), answer.audio_done())
        await connection.wait_until(lambda: connection.has_speech, 1.0)
        async with asyncio.TaskGroup() as group:
            heard = group.create_task(connection.wait_until(lambda: not connection.has_speech, 5.0))
            await settle()
            assert not heard.done()
            scene.clock.advance(1.01)
        assert not connection.has_speech


async def test_a_device_plays_and_gives_back_what_it_did_not_play() -> None:
    device = FakeDevice()
    async with Scene(device) as scene:
        answer = FakeAnswer("a")
        scene.transport.say(answer.created(), answer.audio(1000))
        await settle()
        assert device.call is not None
        device.call.take_audio(24 * 300)
        device.unplayed = 24 * 100
        scene.transport.say(speech_started("q"))
        await settle()
        (cut,) = scene.transport.of(TruncateItem)
        assert isinstance(cut, TruncateItem)
        assert cut.audio_end_ms == 200


async def test_a_device_that_fails_ends_the_call_with_its_reason() -> None:
    async with Scene(FakeDevice(AudioDeviceError("no microphone"))) as scene:
        with pytest.raises(AudioDeviceError, match="no microphone"):
            await scene.connection.wait_until(lambda: False, 1.0)
        assert scene.connection.crash is None


async def test_a_fault_of_our_own_is_kept_for_the_end() -> None:
    fault = KeyError("bug")
    async with Scene(FakeDevice(fault)) as scene:
        with pytest.raises(CallEnded, match="the client failed"):
            await scene.connection.wait_until(lambda: False, 1.0)
    assert scene.connection.crash is fault


async def test_a_lost_connection_reaches_all_who_wait() -> None:
    async with Scene() as scene:
        connection = scene.connection
        stream = connection.streams.open()
        async with asyncio.TaskGroup() as group:
            waiting = [
                group.create_task(caught(connection.ask((ClearAudio(),), one_of(AudioCleared)))),
                group.create_task(caught(connection.wait_until(lambda: False, 5.0))),
            ]
            await settle()
            scene.transport.say(ConnectionLost("gone"))
        assert all(isinstance(task.result(), ConnectionLost) for task in waiting)
        with pytest.raises(ConnectionLost):
            async for _ in stream:
                pass
        with pytest.raises(ConnectionLost):
            connection.send(ClearAudio())


async def test_hanging_up_ends_the_events_without_an_error() -> None:
    async with Scene() as scene:
        stream = scene.connection.streams.open()
        await scene.connection.hang_up()
        assert [type(event) for event in [e async for e in stream]] == [type(greeting())]
        assert isinstance(scene.connection.ended, CallEnded)


async def test_a_server_that_reads_nothing_ends_the_call_when_it_must_be_told_something() -> None:
    async with Scene() as scene:
        scene.transport.stuck = True
        answer = FakeAnswer("a")
        for _ in range(1024):
            scene.connection.send(ClearAudio())
        await settle()
        scene.connection.send(ClearAudio())
        scene.transport.say(answer.created(), answer.audio(100), speech_started("q"))
        await settle()
        assert isinstance(scene.connection.ended, ConnectionLost)


async def test_the_microphone_speaks_the_sessions_format() -> None:
    async with Scene() as scene:
        scene.transport.say(greeting(input_format=PcmFormat(rate=8000)))
        await settle()
        for _ in range(50):
            scene.connection.send_audio(bytes(960))
        await settle()
        sent = scene.transport.of(AppendAudio)
        size = sum(len(each.audio) for each in sent if isinstance(each, AppendAudio))
        assert 15_500 < size <= 16_000
        assert scene.connection.machine.input_clock.position_s == pytest.approx(1.0, abs=0.04)


async def test_taking_the_floor_is_sent_before_the_truncation() -> None:
    async with Scene() as scene:
        answer = FakeAnswer("a")
        scene.transport.say(answer.created(), answer.audio(100))
        await settle()
        scene.connection.perform(scene.connection.machine.interrupt())
        await settle()
        assert [type(each) for each in scene.transport.sent[:2]] == [CancelResponse, TruncateItem]


async def caught(work: Awaitable[object]) -> object:
    try:
        return await work
    except (CallEnded, ConnectionLost, CommandRefused) as exc:
        return exc
