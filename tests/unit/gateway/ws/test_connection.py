from __future__ import annotations

import asyncio
import json
import threading
from collections import deque

import pytest
from structlog.testing import capture_logs

from duologue.core.mailbox import MailboxFull
from duologue.gateway.beside_loop import LARGE_BYTES
from duologue.gateway.ws.connection import PULL_BYTES, Connection, close_of
from duologue.protocol.commands import ClearAudio, Command
from duologue.protocol.dialect import Dialect
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import AudioCleared, ErrorBody, Event
from duologue.protocol.json_codec import REALTIME_JSON, decode_command, encode_event
from duologue.protocol.response_events import OutputTextDelta
from duologue.sessions.port import Attachment, Batch, Delivery
from tests.patience import PATIENCE_S

CLEAR = b'{"type":"input_audio_buffer.clear"}'


class FakeChannel:
    """A peer by hand: ``room`` is how many messages it takes, ``hang_up`` its goodbye."""

    def __init__(self, room: int = 1000) -> None:
        self.room = room
        self.sent: list[bytes] = []
        self.closed: tuple[int, str] | None = None
        self.calls: list[str] = []
        self.held = False
        self._over = asyncio.Event()
        self._room = asyncio.Event()
        self.say = lambda _message: None

    async def run(self, on_message) -> None:
        self.say = on_message
        await self._over.wait()

    def can_send(self) -> bool:
        return self.room > 0 and self.closed is None

    def send(self, message: bytes) -> None:
        assert self.can_send()
        self.room -= 1
        self.sent.append(message)

    def send_binary(self, message: bytes) -> None:
        self.send(b"binary: " + message)

    async def writable(self) -> bool:
        while not self.can_send():
            if self.closed is not None:
                return False
            self._room.clear()
            await self._room.wait()
        return True

    def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)

    def hold(self, on: bool) -> None:
        self.held = on

    def expire(self) -> None:
        self.calls.append("expire")

    async def finish(self) -> None:
        self.calls.append("finish")

    def release(self) -> None:
        self.calls.append("release")

    def give_room(self, messages: int) -> None:
        self.room += messages
        self._room.set()

    def hang_up(self) -> None:
        self._over.set()


class FakePort:
    """A session by hand."""

    id = "sess_1"

    def __init__(self) -> None:
        self.offered: list[Command] = []
        self.rejected: list[ErrorBody] = []
        self.attached: Attachment | None = None
        self.waiting: deque[Event] = deque()
        self.full = False
        self._news = asyncio.Event()
        self._seq = 0

    def attach(self, attachment: Attachment) -> None:
        self.attached = attachment

    def detach(self, attachment: Attachment) -> None:
        assert attachment is self.attached
        self.attached = None

    def offer(self, command: Command) -> None:
        if self.full:
            raise MailboxFull("256 inputs are waiting, the limit is 256")
        self.offered.append(command)
        self._news.set()

    async def has(self, count: int) -> None:
        """Wait until so many commands have come."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.offered) < count:
                self._news.clear()
                await self._news.wait()

    def reject(self, error: ErrorBody) -> None:
        self.rejected.append(error)

    def played(self, item_id: str, played_ms: int) -> None:
        raise AssertionError("a WebSocket client plays by itself")

    def pull(self, max_bytes: int) -> Batch:
        assert max_bytes == PULL_BYTES
        deliveries = []
        for _ in range(min(2, len(self.waiting))):
            self._seq += 1
            deliveries.append(Delivery(self._seq, self.waiting.popleft()))
        return Batch(deliveries, bool(self.waiting))

    def say(self, *events: Event) -> None:
        self.waiting.extend(events)
        assert self.attached is not None
        self.attached.on_output()

    def end(self, reason: str) -> None:
        assert self.attached is not None
        self.attached.on_end(reason)


class Scene:
    """A connection that runs, with both its ends in the test's hands."""

    def __init__(self, room: int = 1000, dialect: Dialect = REALTIME_JSON) -> None:
        self.dialect = dialect
        self.channel = FakeChannel(room)
        self.port = FakePort()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Scene:
        connection = Connection(self.channel, self.port, self.dialect)
        self._task = asyncio.create_task(connection.run())
        await turns()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.channel.hang_up()
        assert self._task is not None
        await self._task
        assert self.port.attached is None
        assert self.channel.calls[-2:] == ["finish", "release"]

    @property
    def numbers(self) -> list[str]:
        return [json.loads(message)["event_id"] for message in self.channel.sent]


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_message_becomes_a_command() -> None:
    async with Scene() as scene:
        scene.channel.say(CLEAR)
        assert scene.port.offered == [ClearAudio()]


@pytest.mark.parametrize("message", [b"", b"\xff\xfe", b"[]", b'{"type":"?"}', b"\x00" * 100])
async def test_what_is_no_command_is_answered_by_one_error(message: bytes) -> None:
    async with Scene() as scene:
        scene.channel.say(message)
        assert len(scene.port.rejected) == 1
        assert scene.port.offered == []
        scene.channel.say(CLEAR)
        assert scene.port.offered == [ClearAudio()]


async def test_a_session_that_takes_no_more_has_the_client_told_so() -> None:
    async with Scene() as scene:
        scene.port.full = True
        scene.channel.say(b'{"type":"input_audio_buffer.clear","event_id":"mine"}')
        (error,) = scene.port.rejected
        assert (error.code, error.event_id) == (ErrorCode.RATE_LIMITED, "mine")


class SlowReading:
    """A dialect that reads large messages when it is told to, and notes in which thread."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.threads: list[int] = []
        self.dialect = Dialect("slow", self._read, encode_event)

    def _read(self, message: bytes) -> Command:
        if len(message) > LARGE_BYTES:
            self.threads.append(threading.get_ident())
            assert self.go.wait(PATIENCE_S)
            return decode_command(message.rstrip(b" "))
        return decode_command(message)


def clear(event_id: str, size: int = 0) -> bytes:
    return b'{"type":"input_audio_buffer.clear","event_id":"%s"}' % event_id.encode() + b" " * size


async def test_a_large_message_is_read_beside_the_loop_and_keeps_its_place() -> None:
    slow = SlowReading()
    async with Scene(dialect=slow.dialect) as scene:
        scene.channel.say(clear("one"))
        scene.channel.say(clear("two", LARGE_BYTES))
        scene.channel.say(clear("three"))
        scene.channel.say(b"{}")
        scene.channel.say(clear("four", LARGE_BYTES))
        assert scene.channel.held
        await turns()
        assert [command.event_id for command in scene.port.offered] == ["one"]
        slow.go.set()
        await scene.port.has(4)
        await turns()
        assert not scene.channel.held
        scene.channel.say(clear("five"))
        ids = [command.event_id for command in scene.port.offered]
        assert ids == ["one", "two", "three", "four", "five"]
        assert len(scene.port.rejected) == 1
    assert len(slow.threads) == 2
    assert threading.get_ident() not in slow.threads


async def test_a_goodbye_behind_a_large_message_is_no_reason_to_lose_it() -> None:
    slow = SlowReading()
    async with Scene(dialect=slow.dialect) as scene:
        scene.channel.say(clear("one", LARGE_BYTES))
        scene.channel.hang_up()
        await turns()
        slow.go.set()
    assert [command.event_id for command in scene.port.offered] == ["one"]


async def test_a_session_under_pressure_is_not_read_on_because_a_large_message_is_done() -> None:
    slow = SlowReading()
    async with Scene(dialect=slow.dialect) as scene:
        scene.channel.say(clear("one", LARGE_BYTES))
        assert scene.port.attached is not None
        scene.port.attached.on_pressure(True)
        slow.go.set()
        await scene.port.has(1)
        await turns()
        assert scene.channel.held
        scene.port.attached.on_pressure(False)
        assert not scene.channel.held


async def test_a_bug_in_reading_a_large_message_ends_the_connection_and_nothing_else() -> None:
    def read(_message: bytes) -> Command:
        raise RuntimeError("a bug")

    with capture_logs() as logs:
        async with Scene(dialect=Dialect("broken", read, encode_event)) as scene:
            scene.channel.say(clear("one", LARGE_BYTES))
    assert scene.channel.closed == (1011, "The server had an internal error.")
    assert [entry["event"] for entry in logs] == ["connection_crashed"]


async def test_an_event_that_the_dialect_has_not_is_left_out() -> None:
    odd = Dialect("realtime", decode_command, lambda e, n: encode_event(e, n) if n % 2 else None)
    async with Scene(dialect=odd) as scene:
        scene.port.say(*[AudioCleared()] * 5)
        assert scene.numbers == ["event_1", "event_3", "event_5"]


async def test_a_dialect_may_be_binary() -> None:
    raw = Dialect("realtime", decode_command, lambda _event, seq: b"%d" % seq, binary=True)
    async with Scene(dialect=raw) as scene:
        scene.port.say(AudioCleared())
        assert scene.channel.sent == [b"binary: 1"]


async def test_output_is_written_where_it_arises() -> None:
    async with Scene() as scene:
        scene.port.say(*[AudioCleared()] * 5)
        assert scene.numbers == [f"event_{n}" for n in range(1, 6)]


async def test_no_more_is_taken_from_the_session_than_the_transport_has_room_for() -> None:
    async with Scene(room=2) as scene:
        scene.port.say(*[AudioCleared()] * 7)
        await turns()
        assert len(scene.channel.sent) == 2
        scene.port.say(AudioCleared())  # and what comes meanwhile overtakes nothing
        assert len(scene.channel.sent) == 2
        scene.channel.give_room(2)
        await turns()
        assert len(scene.channel.sent) == 4
        scene.channel.give_room(100)
        await turns()
        assert scene.numbers == [f"event_{n}" for n in range(1, 9)]
        scene.port.say(AudioCleared())
        assert len(scene.channel.sent) == 9


async def test_the_end_of_a_session_follows_all_that_it_said() -> None:
    async with Scene(room=2) as scene:
        scene.port.say(*[AudioCleared()] * 5)
        scene.port.end(ErrorCode.SESSION_EXPIRED)
        await turns()
        assert scene.channel.closed is None
        scene.channel.give_room(100)
        await turns()
        assert len(scene.channel.sent) == 5
        assert scene.channel.closed == (1001, "Your session hit its maximum duration.")


@pytest.mark.parametrize("room", [0, 1000])
async def test_the_end_of_a_session_is_a_bound_for_a_peer_that_does_not_read(room: int) -> None:
    async with Scene(room=room) as scene:
        scene.port.say(AudioCleared())
        scene.port.end(ErrorCode.CLIENT_TOO_SLOW)
        assert scene.channel.calls == ["expire"]
        await turns()
        assert (scene.channel.closed is None) == (room == 0)


async def test_output_for_a_peer_that_is_gone_keeps_nobody_busy() -> None:
    async with Scene() as scene:
        scene.channel.closed = (1000, "by the peer")
        scene.port.say(AudioCleared())
        await turns()
        assert scene.channel.sent == []


async def test_an_event_that_cannot_be_written_ends_the_connection_and_nothing_else() -> None:
    async with Scene() as scene:
        broken = OutputTextDelta(
            response_id="r", item_id="i", output_index=0, content_index=0, delta="\ud800"
        )
        with capture_logs() as logs:
            scene.port.say(AudioCleared(), broken)
        assert scene.channel.closed == (1011, "The server had an internal error.")
        assert [entry["event"] for entry in logs] == ["connection_crashed"]


async def test_a_cancelled_connection_lets_go_of_both_ends() -> None:
    channel, port = FakeChannel(), FakePort()
    task = asyncio.create_task(Connection(channel, port).run())
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert port.attached is None
    assert channel.calls == ["release"]


@pytest.mark.parametrize(
    ("reason", "close"),
    [
        ("closed", (1000, "closed")),
        (ErrorCode.SHUTTING_DOWN, (1001, "The server is shutting down.")),
        (ErrorCode.CLIENT_TOO_SLOW, (1013, "The client took no data for too long.")),
        (ErrorCode.PLUGIN_ERROR, (1011, "The session failed.")),
    ],
)
def test_every_reason_has_its_close_code(reason: str, close: tuple[int, str]) -> None:
    assert close_of(reason) == close
