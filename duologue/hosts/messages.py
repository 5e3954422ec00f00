"""What the two ends of a link between a gateway and a session host say to each other.

A link carries channels, each of which joins a connection to a session; questions with answers; and
requests to the engine. Either end may open a channel or ask: a host asks an edge for its figures,
and for a look at a call of its. This module must not know how messages travel.
"""

from __future__ import annotations

from typing import TypeAlias

from duologue.engines.pools.start_report import StartReport
from duologue.hosts.engine_messages import FromEngine, ToEngine
from duologue.hosts.link_struct import Fault, LinkStruct, NumberedEvent, Packed
from duologue.hosts.port import Wanted
from duologue.hosts.questions import Question, Reply
from duologue.protocol.events import ErrorBody
from duologue.sessions.owners import Owner

NO_START = StartReport(0.0, 0.0, [])
"""Of a host that has not started its workers yet."""

# Of a channel, from the end that opened it


class OpenChannel(LinkStruct, frozen=True):
    """A client arrives; ``Opened`` or ``Refused`` answers. Channels are numbered by who opens."""

    channel: int
    arrival: Wanted


class Attach(LinkStruct, frozen=True):
    """The client's connection is there."""

    channel: int


class Detach(LinkStruct, frozen=True):
    """The client's connection is gone, and with it the channel."""

    channel: int


class CloseChannel(LinkStruct, frozen=True):
    """Nobody attaches any more: the channel is over, and the session too."""

    channel: int
    reason: str


class Said(LinkStruct, frozen=True):
    """What the client said."""

    channel: int
    command: Packed


class Misread(LinkStruct, frozen=True):
    """The client said what is no command."""

    channel: int
    error: ErrorBody


class Played(LinkStruct, frozen=True):
    """So much of an item has been played."""

    channel: int
    item_id: str
    played_ms: int


class Taken(LinkStruct, frozen=True):
    """So much of the output has been taken: as much again may be sent."""

    channel: int
    size_bytes: int


# Of a channel, to the end that opened it


class Opened(LinkStruct, frozen=True):
    """There is a session, or will be where it has no id yet."""

    channel: int
    session_id: str


class Refused(LinkStruct, frozen=True):
    """There is none, and the channel is over."""

    channel: int
    fault: Fault


class ChannelOutput(LinkStruct, frozen=True):
    """Events for the client, in order."""

    channel: int
    events: list[NumberedEvent]


class Silenced(LinkStruct, frozen=True):
    """Sound of an item that has not been written is not to be. Overtakes output.

    Args:
        item_id: Empty: every item but those of the responses ``beside`` the conversation.
        before_seq: Of events with smaller numbers alone.
    """

    channel: int
    item_id: str
    before_seq: int
    beside: tuple[str, ...] = ()


class Applied(LinkStruct, frozen=True):
    """So much of what the client said has been dealt with: as much again may be sent."""

    channel: int
    size_bytes: int


class ChannelEnded(LinkStruct, frozen=True):
    """The session is over, and the channel too."""

    channel: int
    reason: str


class ConnectionLetGo(LinkStruct, frozen=True):
    """The session goes on without this connection; the channel is over."""

    channel: int
    reason: str
    last_words: list[NumberedEvent]


# Questions


class Ask(LinkStruct, frozen=True):
    """A question, numbered by who asks."""

    number: int
    question: Question


class Answered(LinkStruct, frozen=True):
    """The answer to a question."""

    number: int
    reply: Reply


class Unanswered(LinkStruct, frozen=True):
    """Why there is no answer to a question."""

    number: int
    fault: Fault


# Of the link itself


class Hello(LinkStruct, frozen=True):
    """The first message of an edge.

    Args:
        version: Both ends must be of the same release: messages have no other version.
        edge: Its name, a label of figures.
        challenge: What the host has to prove with that it knows the secret.
    """

    version: str
    edge: str
    challenge: bytes = b""


class Challenge(LinkStruct, frozen=True):
    """A host's answer to ``Hello``: its own proof, and what the edge has to prove with."""

    proof: bytes
    challenge: bytes


class Proof(LinkStruct, frozen=True):
    """An edge's answer to ``Challenge``."""

    proof: bytes


class Welcome(LinkStruct, frozen=True):
    """The edge may begin."""

    host: str


class Goodbye(LinkStruct, frozen=True):
    """The link ends, on purpose; why."""

    reason: str


class Status(LinkStruct, frozen=True):
    """How the host is, whenever that changes, and with each beat.

    Args:
        loaded: All models are.
        accepting: It is not going down.
        sessions: That are open, with places kept.
        max_sessions: The limit.
        detached: Of them, those that wait for their client.
        waiting: Calls that wait for a place.
        workers_ready, workers, every_stage: As ``gateway.admission.Workers``.
        asleep, paused, start: Likewise.
        edges: That are up, of ``edges_expected``.
        tag: Of this start of the host; stands in the ids of its sessions.
        earlier_tags: Of earlier starts, of whose sessions it has checkpoints.
    """

    loaded: bool = False
    accepting: bool = True
    sessions: int = 0
    max_sessions: int = 0
    detached: int = 0
    waiting: int = 0
    workers_ready: int = 0
    workers: int = 0
    every_stage: bool = False
    asleep: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    start: StartReport = NO_START
    edges: int = 0
    edges_expected: int = 0
    tag: str = ""
    earlier_tags: tuple[str, ...] = ()

    def holds(self, tag: str | None) -> bool:
        """Tell whether a session with this tag is here, or what is left of it."""
        return tag is not None and (tag == self.tag or tag in self.earlier_tags)


class CallBegan(LinkStruct, frozen=True):
    """The edge holds a WebRTC call."""

    call_id: str
    owner: Owner


class CallEnded(LinkStruct, frozen=True):
    """And holds it no more."""

    call_id: str


class AnswerFailed(LinkStruct, frozen=True):
    """A request with an idempotency key was not answered: it may be sent again."""

    key: str


class Beat(LinkStruct, frozen=True):
    """A sign of life."""


ToServer: TypeAlias = OpenChannel | Attach | Detach | CloseChannel | Said | Misread | Played | Taken
"""From the end that opened a channel."""

ToOpener: TypeAlias = (
    ChannelOutput | Silenced | Applied | Opened | Refused | ChannelEnded | ConnectionLetGo
)
"""To the end that opened a channel."""

OfLink: TypeAlias = (
    Hello
    | Challenge
    | Proof
    | Welcome
    | Goodbye
    | Status
    | CallBegan
    | CallEnded
    | AnswerFailed
    | Beat
)

LinkMessage: TypeAlias = (
    ToServer | ToOpener | Ask | Answered | Unanswered | ToEngine | FromEngine | OfLink
)
