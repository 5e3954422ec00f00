"""What all stand-ins do: speak for a session until there is one, then hand on to it.

This module must not know what the session waits for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from duologue.protocol.commands import Command
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import ErrorBody, ErrorEvent, Event
from duologue.sessions.port import UNNUMBERED, Attachment, Batch, Delivery, Joined

CLOSED = "closed"
"""The reason of an end that the client asked for."""

MAX_WAITING_ERRORS = 16
"""A client that only makes mistakes, and reads none of the answers, is let go."""


class StandIn(ABC):
    """A port that becomes a session.

    The parts below say what the client's first words lead to, and what is given back when it goes
    before there is a session.
    """

    def __init__(self) -> None:
        self._session: Joined | None = None
        self._attachment: Attachment | None = None
        self._errors: list[ErrorEvent] = []
        self._is_over = False

    @property
    def id(self) -> str:
        """Of the session; empty until there is one."""
        return "" if self._session is None else self._session.id

    def attach(self, attachment: Attachment) -> None:
        """Serve a connection."""
        self._attachment = attachment

    def detach(self, attachment: Attachment) -> None:
        """The connection is gone."""
        if self._session is not None:
            self._session.detach(attachment)
        else:
            self._attachment = None
            self._end(CLOSED)

    def offer(self, command: Command) -> None:
        """Hand in what the client said. What it says after the end leads to nothing."""
        if self._session is not None:
            self._session.offer(command)  # by who stands in for us, and had this way from before
        elif not self._is_over:
            self._offer_early(command)

    def reject(self, error: ErrorBody) -> None:
        """Answer what is no command."""
        if self._session is not None:
            self._session.reject(error)
        elif not self._is_over:
            self._tell(ErrorEvent(error=error))

    def played(self, item_id: str, played_ms: int) -> None:
        """Say what was played: nothing, before there is a session."""
        if self._session is not None:
            self._session.played(item_id, played_ms)

    def pull(self, max_bytes: int) -> Batch:
        """Return what may be written now."""
        if self._session is not None:
            return self._session.pull(max_bytes)
        return Batch([Delivery(UNNUMBERED, event) for event in self._take_news()], False)

    def close(self, reason: str) -> None:
        """End it, before there is a session or after."""
        if self._session is not None:
            self._session.close(reason)
        else:
            self._end(reason)

    @abstractmethod
    def _offer_early(self, command: Command) -> None:
        """Hand in what the client says before there is a session."""

    @abstractmethod
    def _give_up(self) -> None:
        """Want no session any more; called once, and never after ``_become``."""

    def _take_news(self) -> list[Event]:
        """Return what is to be told before there is a session, once."""
        errors: list[Event] = [*self._errors]
        self._errors.clear()
        return errors

    def _become(self, session: Joined) -> None:
        """Hand on to ``session`` from now on; whoever calls this attaches the connection."""
        self._session = session
        self._attachment = None  # its session knows it, and we would be a circle with it
        # What comes for every frame goes there directly.
        self.offer = session.offer  # type: ignore[method-assign]
        self.pull = session.pull  # type: ignore[method-assign]

    def _step_back(self, attachment: Attachment) -> None:
        """Answer again, after all: the session could not be had."""
        self._session = None
        self._attachment = attachment
        del self.offer, self.pull

    def _tell(self, event: ErrorEvent) -> None:
        self._errors.append(event)
        if self._attachment is not None:
            self._attachment.on_output()
        if len(self._errors) > MAX_WAITING_ERRORS:
            self._errors.clear()
            self._end(ErrorCode.CLIENT_TOO_SLOW)

    def _end(self, reason: str) -> None:
        """End before there is a session."""
        if self._is_over:
            return
        self._is_over = True
        attachment, self._attachment = self._attachment, None
        self._give_up()
        if attachment is not None:
            attachment.on_end(reason)
