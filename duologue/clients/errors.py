"""What can go wrong with a call, seen from the caller's side.

```text
DuologueError
  AuthError               the key is missing or wrong          ask for another one
  CapacityError           the server is full                   try again after ``retry_after_s``
  CallError
    ServerUnreachable     nobody answers at the address        is it running?
    NotRealtimeServer     somebody else answers there          another address
    ConnectionLost        the connection broke                 call again
    SessionGone           it broke, and the session is over    call again, with ``transcript``
    ServerSilent          a command was not answered           it may come late, or never
    AnswerTimeout         a question had no answer in time     was it speech? ask again
    CallEnded             the call is over                     ``close_code`` and reason say why
    CommandRefused        the server refused a command         ``body`` names the field
    EventsMissed          a reader of events fell too far behind
    AudioDeviceError      no microphone, no loudspeaker        a file will do, see the message
LimitExceeded
  SendBufferFull          the network takes less than is sent  wait, or shed audio
```

This module must not know transports: each translates its own library's exceptions into these.
"""

from __future__ import annotations

from duologue.core.errors import DuologueError, LimitExceeded
from duologue.protocol.events import ErrorBody

NORMAL_CLOSURE = 1000


class CallError(DuologueError):
    """Base of what goes wrong between a client and its server."""

    default_code = "call_failed"


class ServerUnreachable(CallError):
    """Nobody answers at the address. Raised on connecting; the caller may try again."""

    default_code = "server_unreachable"


class NotRealtimeServer(CallError):
    """Who answers there does not speak this dialect. Trying again will not help."""

    default_code = "not_a_realtime_server"


class ConnectionLost(CallError):
    """The connection broke without a goodbye. Everything that waits for the server raises it."""

    default_code = "connection_lost"


class SessionGone(CallError):
    """The connection broke, and the server has no session any more to go on with.

    What was said until then stands in the call's ``transcript``. A new call knows nothing of it,
    unless the program puts it there.

    Args:
        refused_with: The server's own code for it.
    """

    default_code = "session_gone"

    def __init__(self, message: str, *, refused_with: str) -> None:
        super().__init__(message, details={"refused_with": refused_with})
        self.refused_with = refused_with


class ServerSilent(CallError):
    """A command was not answered in time. The call goes on."""

    default_code = "server_silent"


class AnswerTimeout(CallError, TimeoutError):
    """A question had no whole answer in time; the message says what is known. The call goes on."""

    default_code = "answer_timeout"


class CallEnded(CallError):
    """The call is over. Raised by whatever needs a call that goes on.

    Args:
        close_code: As in the WebSocket close frame; 1000 is a normal end.
    """

    default_code = "call_ended"

    def __init__(self, message: str, *, close_code: int = NORMAL_CLOSURE) -> None:
        super().__init__(message, details={"close_code": close_code})
        self.close_code = close_code

    @property
    def is_normal(self) -> bool:
        """One side hung up, as people do at the end of a conversation."""
        return self.close_code == NORMAL_CLOSURE


class CommandRefused(CallError):
    """The server refused a command; nothing changed and the call goes on.

    Args:
        body: The server's ``error``, in its own words.
    """

    def __init__(self, body: ErrorBody) -> None:
        where = f" ({body.param})" if body.param else ""
        super().__init__(f"the server refused: {body.message}{where}", code=body.code)
        self.body = body


class EventsMissed(CallError):
    """A reader of events fell so far behind that its next one is gone. The call goes on."""

    default_code = "events_missed"


class AudioDeviceError(CallError):
    """The microphone or the loudspeaker cannot be used; the message says what else to do."""

    default_code = "audio_device"


class SendBufferFull(LimitExceeded):
    """Audio is handed over faster than the network takes it. Nothing of it was kept."""

    default_code = "send_buffer_full"
