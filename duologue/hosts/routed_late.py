"""A client that describes its session late, where there are several hosts.

Only its first message says whether it begins a session, at whichever host, or goes on with one that
is at a certain host. This module must not know how messages are written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from duologue.core.errors import DuologueError
from duologue.core.tasks import guard
from duologue.protocol.commands import Command
from duologue.protocol.duplex.commands import ResumeSession
from duologue.protocol.errors import error_body
from duologue.protocol.events import ErrorBody
from duologue.sessions.port import Attachment, Batch, Joined
from duologue.sessions.session import CLIENT_GONE
from duologue.telemetry import get_logger

MAX_EARLY = 64
"""Messages of a client that wait while its host is asked for; further ones are refused there."""

FindHost = Callable[[ResumeSession], Awaitable[Joined | None]]


class RoutedLate:
    """Stands before a late session of one host, and moves to another's before the first message.

    Args:
        port: Of the host with the most room.
        find: Opens a late session at the host that a client goes on at; ``None``: at this one.
        group: Where that is waited for.
    """

    def __init__(self, port: Joined, find: FindHost, group: asyncio.TaskGroup) -> None:
        self.id = port.id
        self._group = group
        self._port = port
        self._find = find
        self._attachment: Attachment | None = None
        self._early: list[Command] = []
        self._moving: asyncio.Task[None] | None = None
        self._has_begun = False

    def attach(self, attachment: Attachment) -> None:
        """Serve a connection."""
        self._attachment = attachment
        self._port.attach(attachment)

    def detach(self, attachment: Attachment) -> None:
        """The connection is gone."""
        self._attachment = None
        self._port.detach(attachment)

    def offer(self, command: Command) -> None:
        """Hand in what the client said, at the host that it is for."""
        if self._moving is not None and len(self._early) < MAX_EARLY:
            self._early.append(command)
        elif isinstance(command, ResumeSession) and not self._has_begun:
            self._early.append(command)
            self._moving = self._group.create_task(
                guard(self._move(command), self._crashed), name="late-route"
            )
        else:
            self._has_begun = True
            self._port.offer(command)

    def reject(self, error: ErrorBody) -> None:
        """Answer what is no command."""
        self._port.reject(error)

    def played(self, item_id: str, played_ms: int) -> None:
        """Say what was played."""
        self._port.played(item_id, played_ms)

    def pull(self, max_bytes: int) -> Batch:
        """Return what may be written now."""
        return self._port.pull(max_bytes)

    def close(self, reason: str) -> None:
        """End it before there is a session."""
        self._port.close(reason)

    async def _move(self, command: ResumeSession) -> None:
        try:
            found = await self._find(command)
        except DuologueError as exc:
            self._early.remove(command)
            self._port.reject(error_body(exc, command.event_id))
            found = None
        attachment = self._attachment
        if found is not None and attachment is None:
            found.close(CLIENT_GONE)
            return
        if found is not None and attachment is not None:
            self._port.detach(attachment)
            self._port = found
            found.attach(attachment)
        self._moving = None
        early, self._early = self._early, []
        for each in early:
            self._port.offer(each)

    def _crashed(self, exc: Exception) -> None:
        """A bug of ours: this client is let go, others never notice."""
        get_logger("hosts").error("late_route_crashed", exc_info=exc)
        if self._attachment is not None:
            self._attachment.on_end("server_error")
