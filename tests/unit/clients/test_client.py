from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from duologue.app import App
from duologue.clients import (
    AnswerTimeout,
    CallEnded,
    CommandRefused,
    ConnectionLost,
    DuplexClient,
    LineState,
)
from duologue.core.errors import CodecError, ConfigError
from duologue.protocol.commands import CreateResponse, RetrieveItem
from duologue.protocol.events import ErrorEvent, SessionCreated
from duologue.protocol.items import MessageItem, OutputAudio
from duologue.protocol.response_events import AudioDelta, ResponseDone
from tests.fakes.clock import FakeClock
from tests.fakes.server import FakeAnswer, FakeTransport, greeting, speech_started


def over_socket(app: App, model: str = "scripted") -> DuplexClient:
    return DuplexClient.connect(app.url, model=model)


def in_process(app: App, model: str = "scripted") -> DuplexClient:
    return DuplexClient.in_process(app.sessions.open(model))


both_ways = pytest.mark.parametrize("reach", [over_socket, in_process])


@both_ways
async def test_typed_text_is_answered_and_heard(gateway: App, reach: object) -> None:
    async with reach(gateway) as call:  # type: ignore[operator]
        events = call.events()
        response_id = await call.say_text("Hello?")
        await call.wait_until(lambda: call.playback.waiting_samples > 0)
        seen = []
        async for event in events:
            seen.append(event)
            if isinstance(event, AudioDelta):
                break
        assert isinstance(seen[0], SessionCreated)
        assert seen[-1].response_id == response_id
        assert call.answering
        assert str(call.transcript).startswith("caller: Hello?")
    assert call.ended is not None
    assert len(gateway.sessions) == 0


@both_ways
async def test_an_interruption_by_hand_is_exact(gateway: App, reach: object) -> None:
    async with reach(gateway) as call:  # type: ignore[operator]
        response_id = await call.say_text("Hello?")
        done = call.events()
        await call.wait_until(lambda: _heard(call) > 24 * 60)
        await call.interrupt()
        assert not call.answering
        async for event in done:
            if isinstance(event, ResponseDone):
                assert event.response.id == response_id
                assert event.response.status == "cancelled"
                break
        item_id = next(iter(call.playback._items))
        item = await call.retrieve(item_id)
        assert isinstance(item, MessageItem)
        assert isinstance(item.content[0], OutputAudio)
        line = call.transcript.get(item_id)
        assert line is not None
        assert line.state is LineState.CUT


def _heard(call: DuplexClient) -> int:
    playback = call.playback
    return sum(playback.heard_samples(item_id) for item_id in playback._items)


async def test_a_second_question_interrupts_the_first_answer(gateway: App) -> None:
    async with over_socket(gateway) as call:
        first = await call.say_text("Hello?")
        second = await call.say_text("And now?")
        assert first != second
        assert [turn.response_id for turn in call.timing] == [first, second]


async def test_a_change_is_in_force_or_refused_whole(gateway: App) -> None:
    async with over_socket(gateway) as call:
        session = await call.update(instructions="Be kind.", speed=1.2)
        assert session.instructions == call.session.instructions == "Be kind."
        with pytest.raises(CommandRefused, match="speed") as refused:
            await call.update(instructions="Be rude.", speed=9.0)
        assert refused.value.code == "invalid_value"
        assert call.session.instructions == "Be kind."


async def test_a_turn_can_be_committed_by_hand(gateway: App) -> None:
    async with over_socket(gateway) as call:
        with pytest.raises(CommandRefused) as refused:
            await call.commit_audio()
        assert refused.value.code == "input_audio_buffer_commit_empty"
        call.send_audio(bytes(24 * 2 * 200))
        await call.drain()
        item_id = await call.commit_audio()
        assert (await call.retrieve(item_id)).id == item_id
        assert await call.create_response()


async def test_any_command_can_be_sent_and_its_refusal_is_an_event(gateway: App) -> None:
    async with over_socket(gateway) as call:
        sent = call.send(RetrieveItem(item_id="nothing"))
        call.clear_audio()
        error = await call.wait_for(ErrorEvent)
        assert error.error.event_id == sent


async def test_an_echo_is_heard_while_one_speaks(gateway: App) -> None:
    async with over_socket(gateway, "echo") as call:
        for _ in range(2):  # the first frame only opens its mouth
            call.send_audio(b"\x00\x10" * 4800)
        await call.wait_until(lambda: _heard(call) > 0)


async def test_an_error_of_the_program_passes_through_as_it_is(gateway: App) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with over_socket(gateway):
            raise KeyError("mine")
    assert len(gateway.sessions) == 0


async def test_a_program_that_is_cancelled_hangs_up(gateway: App) -> None:
    entered = asyncio.Event()

    async def program() -> None:
        async with over_socket(gateway):
            entered.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(program())
        await entered.wait()
        task.cancel()
    assert task.cancelled()
    assert len(gateway.sessions) == 0


async def test_a_server_that_goes_down_ends_the_call(gateway: App) -> None:
    async with over_socket(gateway) as call:
        gateway.sessions.close_all("server_shutting_down")
        with pytest.raises(CallEnded, match="shutting down") as ended:
            await call.wait_until(lambda: False)
        assert ended.value.close_code == 1001


async def test_waiting_for_an_event_that_never_comes_ends_with_the_call(gateway: App) -> None:
    async with over_socket(gateway) as call:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_ended(call))
            await asyncio.sleep(0)
            await call.hang_up()
        assert "before there was a AudioDelta" in waiting.result()


async def _ended(call: DuplexClient) -> str:
    try:
        await call.wait_for(AudioDelta)
    except CallEnded as exc:
        return exc.message
    return ""


def test_an_address_that_is_none_is_refused_before_anything_is_opened() -> None:
    with pytest.raises(ConfigError):
        DuplexClient.connect("ftp://somewhere")


async def test_a_connection_that_breaks_in_the_middle_of_an_answer_ends_the_question() -> None:
    transport, answer = FakeTransport(greeting()), FakeAnswer("a")
    asked = transport.when(CreateResponse)

    async def open_transport() -> FakeTransport:
        return transport

    async def ask(call: DuplexClient) -> str:
        try:
            return (await call.ask("Hello?")).text
        except ConnectionLost as exc:
            return exc.message

    async with DuplexClient(open_transport, clock=FakeClock()) as call:
        answers = call.responses()
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(ask(call))
            await asked.wait()
            transport.say(answer.created(), answer.text("Hel"), ConnectionLost("it broke"))
        assert asking.result() == "it broke"
        partial = await anext(answers)
        assert partial.text == "Hel"
        with pytest.raises(ConnectionLost):
            await partial.finished()
        with pytest.raises(ConnectionLost):
            await anext(answers)


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (lambda call: call.ask_audio("q.wav"), "audio .* must be bytes, not str"),
        (lambda call: call.ask(b"Hello?"), "text must be a str, not bytes"),
        (lambda call: call.say_text(None), "text must be a str, not NoneType"),
    ],
)
async def test_what_cannot_be_said_is_refused_before_anything_is_sent(
    do: Callable[[DuplexClient], Awaitable[object]], words: str
) -> None:
    transport = FakeTransport(greeting())
    async with on(transport) as call:
        with pytest.raises(TypeError, match=words):
            await do(call)
        with pytest.raises(TypeError, match="audio"):
            call.send_audio([0, 1])  # type: ignore[arg-type]
        with pytest.raises(CodecError, match="WAV file data"):
            await call.ask_audio(b"RIFF" + bytes(100))
        assert call.ended is None
    assert transport.sent == []


async def test_a_recording_without_speech_is_told_apart_from_a_late_answer() -> None:
    transport = FakeTransport(greeting())
    async with on(transport) as call:
        with pytest.raises(AnswerTimeout, match="no speech was found in what was sent"):
            await call.ask_audio(bytes(4800), timeout_s=0)
        transport.say(speech_started("q"))
        await call.wait_until(lambda: len(call.timing) == 1)
        with pytest.raises(AnswerTimeout, match="no whole answer within 0 s"):
            await call.ask_audio(bytes(4800), timeout_s=0)
        with pytest.raises(AnswerTimeout, match="no whole answer"):
            await call.ask("Hello?", timeout_s=0)


async def test_a_turn_by_hand_is_not_said_to_hold_no_speech() -> None:
    async with on(FakeTransport(greeting(None))) as call:
        with pytest.raises(AnswerTimeout, match="no whole answer"):
            await call.ask_audio(bytes(4800), timeout_s=0)


def on(transport: FakeTransport) -> DuplexClient:
    async def open_transport() -> FakeTransport:
        return transport

    return DuplexClient(open_transport, clock=FakeClock())
