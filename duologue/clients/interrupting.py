"""How an answer is interrupted by hand, so that afterwards it is over on both sides.

This module must not know why.
"""

from __future__ import annotations

from duologue.clients.connection import Connection, one_of
from duologue.clients.errors import CommandRefused
from duologue.protocol.errors import ErrorCode
from duologue.protocol.response_events import ResponseDone


async def interrupt(connection: Connection) -> None:
    """Stop the answer that is being made or heard, and wait until the server has, too."""
    connection.listen()
    machine = connection.machine
    if not machine.answering:
        return
    active = machine.active_response_id
    ids = connection.perform(machine.interrupt())
    if active is None:
        return
    over = one_of(ResponseDone, lambda event: event.response.id == active)
    try:
        await connection.in_time(connection.replies.wait(ids[:1], over), "response.cancel")
    except CommandRefused as exc:
        # The cancel and the end of the response may cross on the way.
        if exc.code != ErrorCode.CANCEL_NOT_ACTIVE:
            raise
