"""Lines that break, peers that talk nonsense, and peers that do not read; over real sockets."""

from __future__ import annotations

import asyncio
import base64
import gc
import logging
import random
from contextlib import AsyncExitStack

import pytest

from duologue.gateway.settings import GatewaySettings
from duologue.gateway.ws.channel import HIGH_WATER_BYTES, Channel
from duologue.gateway.ws.connection import PULL_BYTES, Connection
from duologue.protocol.limits import MAX_APPEND_BYTES
from duologue.sessions.settings import SessionSettings
from tests.faults.gateway_line import (
    COMMIT,
    CREATE,
    LONG,
    PATH,
    append,
    call,
    line_settings,
    serving,
    take_turn,
    until,
)
from tests.faults.phases import CUTS, PHASES, Cut
from tests.unit.gateway.raw_websocket import (
    BINARY,
    PING,
    TEXT,
    UPGRADE,
    RawWebSocket,
    connected,
    masked,
    request,
)


@pytest.mark.parametrize("cut", CUTS, ids=["reset", "finish"])
@pytest.mark.parametrize("private", [True, False], ids=["callback", "loop"])
async def test_a_line_that_breaks_at_any_moment_leaves_nothing_behind(
    cut: Cut, private: bool
) -> None:
    gateway = GatewaySettings(private_reader=private)
    one_place = SessionSettings(max_sessions=1)
    async with serving(line_settings(gateway, one_place)) as server:
        for phase in PHASES:
            async with connected(server.port) as line:
                await phase(line)
                await line.writer.drain()
                cut(line)
                await line.lost()
            await server.is_clean()
        await server.takes_a_call()


async def test_a_line_that_breaks_while_much_waits_for_it_leaves_nothing_behind() -> None:
    sessions = SessionSettings(max_sessions=1, send_lead_ms=0)
    async with serving(line_settings(sessions=sessions)) as server:
        for cut in CUTS:
            async with call(server.port, LONG, is_deaf=True) as line:
                for event in (append(600), COMMIT, CREATE):
                    line.send_event(event)
                await server.is_backed_up()
                # What no interruption could take back any more.
                assert 0 < max(in_transports()) <= HIGH_WATER_BYTES + 4 * PULL_BYTES
                cut(line)
                if cut is RawWebSocket.finish:
                    line.go_on_reading()
                    await line.lost()
            await server.is_clean()
        await server.takes_a_call()


async def leave_in_order(port: int, chance: random.Random) -> None:
    async with call(port) as line:
        line.close()
        await line.goodbye()


async def leave_in_an_answer(port: int, chance: random.Random) -> None:
    async with call(port, LONG) as line:
        for event in (append(600), COMMIT, CREATE):
            line.send_event(event)
        for _ in range(chance.randrange(12)):
            await line.event()
        chance.choice(CUTS)(line)


async def leave_at_once(port: int, chance: random.Random) -> None:
    async with connected(port) as line:
        sent = request(PATH, {"Host": "h", **UPGRADE})
        line.write(sent[: chance.randrange(len(sent) + 1)])
        chance.choice(CUTS)(line)


async def have_a_wrong_key(port: int, chance: random.Random) -> None:
    async with connected(port) as line:
        answer = await line.ask(PATH, UPGRADE | {"Origin": "https://elsewhere.example"})
        assert answer.status == 403


async def talk_nonsense(port: int, chance: random.Random) -> None:
    async with call(port) as line:
        line.write(chance.randbytes(chance.randrange(1, 2000)))
        chance.choice(CUTS)(line)


async def say_goodbye_twice(port: int, chance: random.Random) -> None:
    async with call(port) as line:
        line.close()
        line.close(1001)
        line.send(PING)
        await line.goodbye()


WAYS = (
    leave_in_order,
    leave_in_an_answer,
    leave_at_once,
    have_a_wrong_key,
    talk_nonsense,
    say_goodbye_twice,
)


async def test_after_a_hundred_comings_and_goings_every_place_is_free_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, "asyncio")  # its remarks on slow calls keep what was called
    chance = random.Random(7)
    places = SessionSettings(max_sessions=8)
    others = ends_of_lines()  # what an earlier test left is not ours to answer for
    async with serving(line_settings(sessions=places)) as server:
        await server.takes_a_call()
        tasks = len(asyncio.all_tasks())
        for _ in range(20):
            async with asyncio.TaskGroup() as group:
                for _ in range(5):
                    group.create_task(chance.choice(WAYS)(server.port, chance))
        await server.is_clean()
        for _ in range(8):
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) <= tasks
        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(server.takes_a_call())
        await server.is_clean()
        await until(lambda: not left_lines(others))


def in_transports() -> list[int]:
    channels = [each for each in gc.get_objects() if issubclass(type(each), Channel)]
    return [channel._transport.get_write_buffer_size() for channel in channels]


def ends_of_lines() -> list[Channel | Connection]:
    gc.collect()
    # Their types, since to ask a weak proxy of something gone what it is raises.
    return [each for each in gc.get_objects() if issubclass(type(each), Channel | Connection)]


def left_lines(others: list[Channel | Connection]) -> list[Channel | Connection]:
    known = {id(each) for each in others}
    return [each for each in ends_of_lines() if id(each) not in known]


NOT_AUDIO = [
    '"===="',
    '"abc"',
    '"AAAA\\nAAAA"',
    '"AA AA"',
    '"-_-_"',
    '"data:audio/wav;base64,AAAA"',
    '"' + "A" * 5_000_000 + '*"',
    "7",
    "null",
    "[]",
    "{}",
]


async def test_audio_that_is_none_is_refused_and_the_buffer_stays_as_it_was() -> None:
    async with serving(line_settings()) as server, call(server.port) as line:
        for audio in NOT_AUDIO:
            message = f'{{"type":"input_audio_buffer.append","event_id":"bad","audio":{audio}}}'
            line.send(TEXT, message.encode())
            await is_refused(line, "audio", "bad")
        line.send(TEXT, b'{"type":"input_audio_buffer.append","event_id":"bad"}')
        await is_refused(line, "audio", "bad")
        line.send(TEXT, b'{"type":"input_audio_buffer.append","audio":""}')
        line.send_event(COMMIT)
        (error,) = await line.until("error")
        assert "0 ms" in error["error"]["message"]
        await take_turn(line)


async def is_refused(line: RawWebSocket, param: str | None, event_id: str | None) -> None:
    """Exactly one error came; the next answer is to the next question."""
    (event,) = await line.until("error")
    assert event["error"]["type"] == "invalid_request_error"
    assert event["error"]["param"] == param
    assert event["error"]["event_id"] == event_id
    line.send_event({"type": "input_audio_buffer.clear"})
    (event,) = await line.until("input_audio_buffer.cleared")


NONSENSE: dict[str, bytes] = {
    "not JSON": b"hello",
    "nothing": b"",
    "an array": b"[]",
    "null": b"null",
    "a string": b'"x"',
    "an empty object": b"{}",
    "a type that is a number": b'{"type":1}',
    "an unknown type": b'{"type":"session.explode"}',
    "a type with a space": b'{"type":"response.create "}',
    "a type of the server": b'{"type":"session.created"}',
    "twice the same key": b'{"type":"response.create","type":"response.cancel"}',
    "deep arrays": b'{"type":"response.create","response":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "deep objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "not a number": b'{"type":"conversation.item.truncate","audio_end_ms":NaN}',
    "infinity": b'{"type":"conversation.item.truncate","audio_end_ms":Infinity}',
    "two megabytes of id": b'{"type":"response.create","event_id":"' + b"e" * 2_000_000 + b'"}',
    "a byte order mark": b'\xef\xbb\xbf{"type":"response.create"}',
    "no UTF-8": b'{"type":"response.create","event_id":"\xff\xfe"}',
    "half a message": b'{"type":"input_audio_buffer.append","audio":"AAAA',
    "two messages": b'{"type":"response.create"}{"type":"response.create"}',
    "zero bytes": bytes(1000),
}


async def test_any_nonsense_gets_one_error_and_a_normal_turn_works_afterwards() -> None:
    async with serving(line_settings()) as server, call(server.port) as line:
        for number, (what, message) in enumerate(NONSENSE.items()):
            line.send((TEXT, BINARY)[number % 2], message)
            events = await line.until("error")
            assert len(events) == 1, what
            if number % 7 == 0:
                await take_turn(line)
        await take_turn(line)
        # A lone surrogate may be refused or not; either way the call goes on.
        text = b'{"type":"input_text","text":"\\ud800"}'
        item = b'{"type":"message","role":"user","content":[' + text + b"]}"
        line.send(TEXT, b'{"type":"conversation.item.create","item":' + item + b"}")
        line.send_event({"type": "input_audio_buffer.clear"})
        await line.until("input_audio_buffer.cleared")
        await take_turn(line)


async def test_a_flood_of_nonsense_from_a_peer_that_does_not_read_stays_bounded() -> None:
    sessions = SessionSettings(stall_limit_s=0.5)
    async with serving(line_settings(sessions=sessions)) as server:
        async with call(server.port, is_deaf=True) as line:
            for _ in range(50):
                # On a busy machine it is let go before it has said everything.
                if line.writer.is_closing():
                    break
                line.write(masked(TEXT, b"nonsense") * 200)
                await asyncio.sleep(0)
                assert all(held <= 4 << 20 for held in server.held_bytes())
            await server.is_clean()
        await server.takes_a_call()


async def test_the_largest_append_is_taken_and_the_next_larger_one_is_refused() -> None:
    # At the rate of the models, since half an hour of audio is long to convert.
    format_ = {"format": {"type": "audio/pcm", "rate": 16000}}
    update = {
        "type": "session.update",
        "session": {"type": "realtime", "audio": {"input": format_}},
    }
    sessions = SessionSettings(input_buffer_ms=600_000)
    async with serving(line_settings(sessions=sessions)) as server, call(server.port) as line:
        line.send_event(update)
        await line.until("session.updated")
        for size, is_taken in ((-2, True), (0, True), (1, False)):
            silence = base64.b64encode(bytes(MAX_APPEND_BYTES + size))
            line.send(TEXT, b'{"type":"input_audio_buffer.append","audio":"' + silence + b'"}')
            line.send_event({"type": "input_audio_buffer.clear"})
            kinds = [event["type"] for event in await line.until("input_audio_buffer.cleared")]
            assert kinds == [*([] if is_taken else ["error"]), "input_audio_buffer.cleared"]
        await take_turn(line)


async def test_more_audio_than_a_buffer_holds_is_refused_and_what_it_holds_stays() -> None:
    sessions = SessionSettings(input_buffer_ms=2500)
    async with serving(line_settings(sessions=sessions)) as server, call(server.port) as line:
        for _ in range(3):
            line.send_event(append(1000))
        (event,) = await line.until("error")
        assert event["error"]["code"] == "input_audio_buffer_full"
        line.send_event(COMMIT)
        await line.until("input_audio_buffer.committed")


async def test_a_message_over_the_limit_ends_the_call_with_the_limit_in_its_reason() -> None:
    gateway = GatewaySettings(max_message_bytes=50_000, close_timeout_s=0.2)
    async with serving(line_settings(gateway)) as server:
        async with call(server.port) as line:
            line.send(TEXT, b"m" * 60_000)
            goodbye = await line.goodbye()
            assert goodbye.code == 1009
            assert "50000" in goodbye.reason
            await server.is_clean()
        await server.takes_a_call()


async def test_peers_that_do_not_read_cost_only_themselves() -> None:
    sessions = SessionSettings(stall_limit_s=1.5, send_lead_ms=0)
    async with serving(line_settings(sessions=sessions)) as server, AsyncExitStack() as stack:
        for _ in range(4):
            line = await stack.enter_async_context(call(server.port, LONG, is_deaf=True))
            for event in (append(600), COMMIT, CREATE):
                line.send_event(event)
        await server.is_backed_up()
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(server.takes_a_call())
        assert all(held <= sessions.output_buffer_bytes for held in server.held_bytes())
        # The deaf ones are still there, and are let go for nothing but their silence.
        await server.is_clean()
        await server.takes_a_call()
