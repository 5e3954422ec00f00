"""What the engine and the process that drives the cluster say to each other.

Frames of ``engines.framing`` on a socket pair, with lists of these. This module must not know Ray.
"""

from __future__ import annotations

import msgspec

from duologue.engines.messages import Placement
from duologue.engines.transport.remote_seat import RemoteSeat


class Birth(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker's process is started on its machine.

    Args:
        env: Set before it loads anything.
        interpreter: ``None``: that of the machine's own Ray.
        seat: Of its transport, but for the address, which its machine knows; ``None``: large
            payloads go with the messages.
    """

    name: str
    env: dict[str, str]
    interpreter: str | None = None
    seat: RemoteSeat | None = None


class _Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    pass


# To the driver


class Join(_Message, frozen=True):
    """Join a cluster; the first message."""

    address: str
    place_timeout_s: float


class Find(_Message, frozen=True):
    """Find a place for a worker, and start it there.

    Args:
        id: Of this attempt.
        secret: What whoever comes to the worker's door must know.
    """

    id: int
    placement: Placement
    birth: Birth
    secret: bytes


class Kill(_Message, frozen=True):
    """Be rid of a worker, wherever its start has come to; answered by ``Gone``."""

    id: int


ToDriver = Join | Find | Kill


# From the driver


class Joined(_Message, frozen=True):
    """The cluster is there."""


class NotJoined(_Message, frozen=True):
    """It is not, and the driver leaves."""

    reason: str


class Found(_Message, frozen=True):
    """A worker has a machine, and somebody there listens for its two connections."""

    id: int
    host: str
    port: int


class Born(_Message, frozen=True):
    """The worker's process runs and has its connections."""

    id: int


class Gone(_Message, frozen=True):
    """The last word on a worker.

    Args:
        how: As ``its process ended with status 3``, or why there never was one.
    """

    id: int
    how: str


FromDriver = Joined | NotJoined | Found | Born | Gone

decode_orders = msgspec.msgpack.Decoder(list[ToDriver]).decode
decode_news = msgspec.msgpack.Decoder(list[FromDriver]).decode
