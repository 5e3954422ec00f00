"""What the parts of a server in several processes are told, and what they report.

An order is the first line that a part reads; it may hold a secret, so it is no argument. Reports
are lines that it writes. This module must not know how processes are started.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from duologue.engines.pools.start_report import StartReport

BEAT_S = 1.0
"""How often a part that is up says that its loop turns."""


class HostOrder(msgspec.Struct, frozen=True, kw_only=True, tag="host"):
    """Hold sessions and models.

    Args:
        socket: Where gateways of this machine come.
        tag: Of this start; stands in the ids of its sessions where there are other hosts.
        edges: How many of them there will be.
    """

    name: str
    socket: str
    edges: int = 0
    tag: str = ""


class EdgeOrder(msgspec.Struct, frozen=True, kw_only=True, tag="edge"):
    """Be one of several gateways.

    Args:
        socket: Where the host of this machine is; empty: there is none.
        index: 0 for the first, which also serves what only one can.
        port: The one that all share.
        signing_key: Signs client secrets where the settings have no key for that.
    """

    name: str
    index: int
    socket: str
    port: int
    signing_key: str = ""


Order: TypeAlias = HostOrder | EdgeOrder


class TakesConnections(msgspec.Struct, frozen=True, tag="listening"):
    """A gateway takes connections."""

    url: str


class HostReady(msgspec.Struct, frozen=True, tag="ready"):
    """A session host has its models, and all its gateways; how its workers started."""

    start: StartReport


class HostDrained(msgspec.Struct, frozen=True, tag="drained"):
    """A session host has no session left: its gateways may go."""


class LoopTurns(msgspec.Struct, frozen=True, tag="turns"):
    """The loop of a part turns."""


PartReport: TypeAlias = TakesConnections | HostReady | HostDrained | LoopTurns

_order = msgspec.json.Decoder(Order)
_report = msgspec.json.Decoder(PartReport)


def write_line(value: Order | PartReport) -> bytes:
    """Return a line."""
    return msgspec.json.encode(value) + b"\n"


def read_order(line: bytes) -> Order:
    """Read an order.

    Raises:
        msgspec.MsgspecError: It is none.
    """
    return _order.decode(line)


def read_report(line: bytes) -> PartReport | None:
    """Read a report; ``None`` for a line that is none: libraries print, too."""
    try:
        return _report.decode(line)
    except msgspec.MsgspecError:
        return None
