"""A call on a session of the same process: no socket, no JSON, the same refusals.

For tests, for programs that embed a server, and for measuring what the wire costs. This module
must not know how the session works.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from duologue.clients.errors import NORMAL_CLOSURE, CallEnded
from duologue.clients.transports.base import Received
from duologue.core.errors import ClientError
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.command_checks import check_command
from duologue.protocol.commands import Command
from duologue.protocol.errors import ERROR_TABLE, ErrorCode, error_body
from duologue.sessions.port import Delivery, SessionPort

PULL_BYTES = 16 * 1024
"""As much as a gateway takes at a time: what was pulled, no interruption gets back."""


class InProcessTransport:
    """The ``Attachment`` of a session in this process.

    Concurrency:
        Belongs to the event loop that the session is on.
    """

    server_plays = False

    def __init__(self, session: SessionPort) -> None:
        self._session = session
        self._news = asyncio.Event()
        self._pulled: deque[Delivery] = deque()
        self._ended: CallEnded | None = None
        session.attach(self)
        # A session greets when it is opened, before anybody is attached.
        self._news.set()

    async def send(self, command: Command) -> None:
        """Offer a command, refused in the same words as on the wire."""
        if self._ended is not None:
            raise self._ended
        try:
            if not isinstance(command, AppendAudio):
                check_command(command)
            self._session.offer(command)
        except ClientError as exc:
            self._session.reject(error_body(exc, command.event_id))

    async def receive(self) -> Received:
        """Return the next event; what the session had to say before its end comes first."""
        while not self._pulled:
            if self._ended is not None:
                if not self._pull():
                    raise self._ended
                continue
            await self._news.wait()
            self._news.clear()
            self._pull()
        delivery = self._pulled.popleft()
        return Received(delivery.event, delivery.seq)

    def abort(self) -> None:
        """Hang up; there is nothing to wait for."""
        self._hang_up()

    async def close(self) -> None:
        """Hang up; the session ends."""
        self._hang_up()

    def _hang_up(self) -> None:
        if self._ended is None:
            self._ended = CallEnded("the call is over")
            self._news.set()
            self._session.detach(self)

    # Attachment

    def on_output(self) -> None:
        """Wake the reader."""
        self._news.set()

    def on_end(self, reason: str) -> None:
        """Note why the session is over, and wake the reader."""
        if self._ended is None:
            self._ended = _ended_for(reason)
        self._news.set()

    def on_pressure(self, _on: bool) -> None:
        """Nothing: the session is in this process."""

    def on_let_go(self, reason: str, last_words: Sequence[Delivery]) -> None:
        """Not heard here, since no such session is resumable; the call would end."""
        self.on_end(reason)

    def _pull(self) -> bool:
        """Take what may be taken now; tells whether there was anything."""
        batch = self._session.pull(PULL_BYTES)
        self._pulled.extend(batch.deliveries)
        if batch.more:
            self._news.set()
        return bool(batch.deliveries)


def _ended_for(reason: str) -> CallEnded:
    try:
        row = ERROR_TABLE[ErrorCode(reason)]
    except ValueError:
        return CallEnded("the call is over", close_code=NORMAL_CLOSURE)
    return CallEnded(f"the server ended the call: {row.public_text}", close_code=row.close_code)
