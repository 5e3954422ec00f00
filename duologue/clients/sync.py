"""Calls for scripts: every method waits, and nothing needs to be known of asyncio.

A call runs on an event loop in a thread of its own, from ``with`` to its end. This module must not
know what is said in a call: all of it is ``DuplexClient``'s.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar, Unpack

from duologue.clients.client import ANSWER_TIMEOUT_S, TIMEOUT_S, DuplexClient
from duologue.clients.devices import Device
from duologue.clients.errors import CallEnded
from duologue.clients.event_stream import EventStream
from duologue.clients.machine import EventOrUnknown
from duologue.clients.reconnect.policy import RECONNECT, ReconnectPolicy
from duologue.clients.responses import Response, ResponseStream
from duologue.clients.session_patches import SessionChanges
from duologue.clients.transcript import Line
from duologue.clients.transports.opening import TransportName
from duologue.core.tasks import CrashBarrier
from duologue.protocol.client_dialects import ClientFamily
from duologue.protocol.commands import Command
from duologue.protocol.dialect import Encoding
from duologue.protocol.session_config import AnySession

T = TypeVar("T")

_START_TIMEOUT_S = 10.0
_LOOK_S = 0.5


class SyncClient:
    """One call: ``with SyncClient.connect(url) as call: print(call.ask("...").text)``.

    Ctrl-C interrupts whatever waits, and the call is hung up on the way out of the ``with`` block.
    Arguments of a wrong type raise ``TypeError`` before anything is sent.

    Args:
        make: Makes the call; ``connect`` does so for a server's address.

    Concurrency:
        Any thread may use it, functions that the model calls included. Async functions among
        those run on the call's own loop and must not: they would wait for themselves.
    """

    def __init__(self, make: Callable[[], DuplexClient]) -> None:
        self._make = make
        self._thread = threading.Thread(target=self._hold, name="duologue-call", daemon=True)
        self._started = threading.Event()
        self._entered: Future[DuplexClient] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._leave: asyncio.Event | None = None
        self._crash: Exception | None = None

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        api_key: str | None = None,
        model: str | None = None,
        transport: TransportName = "websocket",
        dialect: ClientFamily = "realtime",
        encodings: Sequence[Encoding] = ("msgpack", "json"),
        device: Device | None = None,
        timeout_s: float = TIMEOUT_S,
        reconnect: ReconnectPolicy | None = RECONNECT,
        **changes: Unpack[SessionChanges],
    ) -> SyncClient:
        """Return a call; entering it connects. As ``DuplexClient.connect``."""

        def make() -> DuplexClient:
            return DuplexClient.connect(
                url,
                api_key=api_key,
                model=model,
                transport=transport,
                dialect=dialect,
                encodings=encodings,
                device=device,
                timeout_s=timeout_s,
                reconnect=reconnect,
                **changes,
            )

        return cls(make)

    def __enter__(self) -> SyncClient:
        try:
            self._thread.start()
            _result(self._entered)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()
        if self._crash is not None and exc is None:
            raise self._crash

    # What is known

    @property
    def session(self) -> AnySession:
        """The session as the server showed it last."""
        return self._call.session

    @property
    def transcript(self) -> list[Line]:
        """What both sides said so far, see ``DuplexClient.transcript``."""

        async def lines(call: DuplexClient) -> list[Line]:
            return list(call.transcript)

        return self._run(lines)

    @property
    def reconnecting(self) -> bool:
        """The connection is lost, and another one is on its way; the call goes on."""
        return self._call.reconnecting

    def responses(self) -> Iterator[Response]:
        """Iterate over the answers, each when it is whole; ends with the call.

        The first iterator starts with the first answer of the call, later ones with the next.

        Raises:
            CallError: The call ended other than by hanging up.
        """

        async def begin(call: DuplexClient) -> ResponseStream:
            return call.responses()

        return self._whole_answers(self._run(begin))

    def events(self) -> Iterator[EventOrUnknown]:
        """Iterate over the server's events, as ``DuplexClient.events`` does.

        Raises:
            CallError: The call ended other than by hanging up.
        """

        async def begin(call: DuplexClient) -> EventStream:
            return call.events()

        return self._each_event(self._run(begin))

    # What to do

    def ask(self, text: str, timeout_s: float = ANSWER_TIMEOUT_S) -> Response:
        """Type a question and return the whole answer, functions included.

        Raises:
            CommandRefused: The server does not accept the text.
            AnswerTimeout: The answer takes too long.
            CallError: The call ended first.
        """
        return self._run(lambda call: call.ask(text, timeout_s))

    def ask_audio(self, pcm: bytes, timeout_s: float = ANSWER_TIMEOUT_S) -> Response:
        """Say a recording as a person would, and return the whole answer.

        Args:
            pcm: One turn: s16le mono at 24 kHz. It takes as long as it is.

        Raises:
            CodecError: It is a file, such as a WAV: see ``read_wav``.
            AnswerTimeout: No answer came in time; the message says if no speech was found.
            CallError: The call ended first.
        """
        return self._run(lambda call: call.ask_audio(pcm, timeout_s))

    def send(self, command: Command) -> str | None:
        """Send any command; an error in answer to it repeats the id that is returned.

        Raises:
            SendBufferFull: Too much waits to be sent.
            CallError: The call is over.
        """

        async def hand_over(call: DuplexClient) -> str | None:
            return call.send(command)

        return self._run(hand_over)

    def send_audio(self, pcm: bytes) -> None:
        """Say something: s16le mono at 24 kHz. Waits while the network takes no more.

        Raises:
            CallError: The call is over.
        """

        async def say(call: DuplexClient) -> None:
            await call.drain()
            call.send_audio(pcm)

        self._run(say)

    def show_frame(self, picture: bytes, frame_id: str | None = None) -> None:
        """Show what the camera sees now, see ``DuplexClient.show_frame``.

        Raises:
            ConfigError: The call is not of the duplex dialect, or its model does not see.
            CallError: The call is over.
        """

        async def show(call: DuplexClient) -> None:
            call.show_frame(picture, frame_id)

        self._run(show)

    def update(self, **changes: Unpack[SessionChanges]) -> AnySession:
        """Change the session; all of it, or nothing. Returns what is in force now.

        Raises:
            CommandRefused: The server does not accept a value; nothing changed.
        """
        return self._run(lambda call: call.update(**changes))

    def interrupt(self) -> None:
        """Stop the answer that is being made or heard.

        Raises:
            CallError: The call is over.
        """
        self._run(lambda call: call.interrupt())

    def wait_until_quiet(self, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        """Wait until no answer is being made or heard.

        Raises:
            TimeoutError: It goes on.
            CallError: The call ended first.
        """
        self._run(lambda call: call.wait_until_quiet(timeout_s))

    def hang_up(self) -> None:
        """End the call; leaving the ``with`` block does so, too."""
        self._run(lambda call: call.hang_up())

    # The thread

    @property
    def _call(self) -> DuplexClient:
        if self._entered.done() and self._thread.is_alive():
            return self._entered.result()
        raise CallEnded("there is no call here: use it inside of its 'with' block")

    def _run(self, work: Callable[[DuplexClient], Coroutine[Any, Any, T]]) -> T:
        """Do something on the call's loop, and wait for it."""
        call, loop = self._call, self._loop
        assert loop is not None, "a call that was entered has a loop"
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "this would wait for itself: an async function runs on the call's own loop. Make "
                "it a plain function, or use DuplexClient."
            )
        future = asyncio.run_coroutine_threadsafe(work(call), loop)
        try:
            return _result(future)
        except BaseException:
            future.cancel()  # where it is Ctrl-C that ended the wait
            raise

    def _whole_answers(self, stream: ResponseStream) -> Iterator[Response]:
        async def following(_call: DuplexClient) -> Response | None:
            async for response in stream:
                return await response.finished()
            return None

        while self._thread.is_alive() and (response := self._run(following)) is not None:
            yield response

    def _each_event(self, stream: EventStream) -> Iterator[EventOrUnknown]:
        async def following(_call: DuplexClient) -> EventOrUnknown | None:
            async for event in stream:
                return event
            return None

        while self._thread.is_alive() and (event := self._run(following)) is not None:
            yield event

    def _hold(self) -> None:
        """The thread: holds the call from its beginning to its end."""
        with CrashBarrier(self._failed), suppress(asyncio.CancelledError):
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._leave = asyncio.Event()
        self._started.set()
        async with self._make() as call:
            self._entered.set_result(call)
            await self._leave.wait()

    def _failed(self, exc: Exception) -> None:
        if self._entered.done():
            self._crash = exc
        else:
            self._entered.set_exception(exc)
        self._started.set()

    def _end(self) -> None:
        """Hang up, and wait until the thread has ended."""
        if self._thread.ident is None:
            return
        self._started.wait(_START_TIMEOUT_S)
        if self._loop is not None and self._leave is not None and self._task is not None:
            entered = self._entered.done() and self._entered.exception() is None
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._leave.set if entered else self._task.cancel)
        while self._thread.is_alive():
            self._thread.join(_LOOK_S)


def _result(future: Future[T]) -> T:
    """Wait for a future, and look up at times: Ctrl-C can slip in just before a wait begins."""
    while not future.done():
        futures.wait((future,), _LOOK_S)
    return future.result()
