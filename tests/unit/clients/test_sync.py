"""Calls of scripts: the gateway runs on a loop of its own here, and the test is the script."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from duologue.app import App, running_app
from duologue.clients import CallEnded, CommandRefused, DuplexClient, ServerUnreachable, Tool
from duologue.clients.sync import SyncClient
from duologue.clients.transports import Received, Transport
from duologue.core.errors import CodecError
from duologue.protocol.commands import ClearAudio
from duologue.protocol.events import AudioCleared, Event, SessionCreated
from tests.fakes.server import FakeTransport, greeting
from tests.fakes.small_gateway import LINE, small_settings
from tests.patience import PATIENCE_S


class Gateway:
    """A server on another thread's loop."""

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        self.url = app.url
        self._app = app
        self._loop = loop

    def go_down(self) -> None:
        self._loop.call_soon_threadsafe(self._app.sessions.close_all, "server_shutting_down")


@contextmanager
def served() -> Iterator[Gateway]:
    started: list[Gateway] = []
    up, down = threading.Event(), threading.Event()

    async def serve() -> None:
        async with running_app(small_settings()) as app:
            started.append(Gateway(app, asyncio.get_running_loop()))
            up.set()
            await asyncio.to_thread(down.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="gateway")
    thread.start()
    try:
        assert up.wait(PATIENCE_S)
        yield started[0]
    finally:
        down.set()
        thread.join(10)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with served() as app:
        yield app


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert [each.name for each in threading.enumerate() if each.name.startswith("duologue")] == []


def test_a_script_asks_and_reads_the_answer(gateway: Gateway) -> None:
    with SyncClient.connect(gateway.url, instructions="Be kind.") as call:
        answer = call.ask("Hello?")
        assert (answer.text, answer.status) == (LINE, "completed")
        assert len(answer.audio) > 48_000
        assert call.session.instructions == "Be kind."  # type: ignore[union-attr]
        assert [line.text for line in call.transcript] == ["Hello?", LINE]
    with pytest.raises(CallEnded, match="'with' block"):
        call.ask("Still there?")


def test_a_recording_is_said_and_answered(gateway: Gateway) -> None:
    with SyncClient.connect(gateway.url, turn_detection=None) as call:
        assert call.ask_audio(bytes(48 * 300)).text == LINE
        call.send_audio(bytes(480))
        with pytest.raises(CommandRefused):
            call.ask_audio(b"")


def test_wrong_arguments_are_named_and_the_call_goes_on(gateway: Gateway) -> None:
    with SyncClient.connect(gateway.url, dialect="duplex") as call:
        with pytest.raises(TypeError, match="must be bytes, not str"):
            call.ask_audio("q.wav")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="must be bytes"):
            call.send_audio("q.wav")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a picture must be bytes"):
            call.show_frame("photo.jpg")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="must be a str"):
            call.ask(None)  # type: ignore[arg-type]
        with pytest.raises(CodecError, match="FLAC"):
            call.ask_audio(b"fLaC" + bytes(100))
        assert call.ask("Hello?").text == LINE


def test_functions_may_use_the_call_themselves(gateway: Gateway) -> None:
    def weather(city: str) -> str:
        call.send(ClearAudio())
        return f"sunny in {city} after {len(call.transcript)} line"

    async def clock() -> str:
        return call.ask("Am I waiting for myself?").text

    with SyncClient.connect(gateway.url, model="caller", tools=[weather, clock]) as call:
        text = call.ask("What is it like?").text
    assert "sunny in Nice after 1 line" in text
    assert "wait for itself" in text


def test_answers_and_events_are_iterated_over(gateway: Gateway) -> None:
    noon = Tool(lambda: "noon", name="clock")
    with SyncClient.connect(gateway.url, model="caller", tools=[noon]) as call:
        answers, events = call.responses(), call.events()
        assert isinstance(next(events), SessionCreated)
        call.ask("What time is it?")
        assert [each.name for each in next(answers).calls] == ["clock"]
        assert next(answers).text.startswith("It is ")
        call.interrupt()
        call.wait_until_quiet()
        call.send(ClearAudio())
        assert any(isinstance(event, AudioCleared) for event in events)
        call.hang_up()
        assert list(answers) == list(events) == []


def test_a_change_is_in_force_or_refused(gateway: Gateway) -> None:
    with SyncClient.connect(gateway.url) as call:
        assert call.update(instructions="Be brief.").instructions == "Be brief."  # type: ignore[union-attr]
        with pytest.raises(CommandRefused):
            call.update(speed=9.0)


def test_what_keeps_a_call_from_beginning_is_raised_where_it_should_begin() -> None:
    with pytest.raises(ServerUnreachable), SyncClient.connect("127.0.0.1:1"):
        raise AssertionError("it was entered")
    with pytest.raises(KeyError), SyncClient(_no_call):
        raise AssertionError("it was entered")


def _no_call() -> DuplexClient:
    raise KeyError("mine")


def test_errors_of_the_script_pass_through(gateway: Gateway) -> None:
    with pytest.raises(KeyError, match="mine"), SyncClient.connect(gateway.url):
        raise KeyError("mine")


def test_a_server_that_goes_down_ends_whatever_waits() -> None:
    with served() as gateway, SyncClient.connect(gateway.url, model="echo") as call:
        answers = call.responses()
        gateway.go_down()
        with pytest.raises(CallEnded, match="shutting down"):
            list(answers)


class Silent(FakeTransport):
    """Says nothing more after its first events; then somebody presses Ctrl-C."""

    async def receive(self) -> Received:
        if not self._events:
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, signal.SIGINT)
        return await super().receive()


def hold(transport: FakeTransport) -> None:
    async def open_transport() -> Transport:
        return transport

    with SyncClient(lambda: DuplexClient(open_transport, timeout_s=60)) as call:
        call.ask("Is anybody there?")


@pytest.mark.parametrize("events", [(), (greeting(),)])
def test_ctrl_c_ends_the_wait_and_hangs_up(events: tuple[Event, ...]) -> None:
    """While it connects, and while it waits for an answer."""
    transport = Silent(*events)
    with pytest.raises(KeyboardInterrupt):
        hold(transport)
    assert transport.closed


def test_a_call_that_was_never_begun_needs_no_end() -> None:
    SyncClient(_no_call)._end()
