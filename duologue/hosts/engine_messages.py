"""Requests of a gateway to the engine of a session host, and what comes of them.

As the methods of ``engines.ports.EnginePort``. This module must not know how messages travel.
"""

from __future__ import annotations

from typing import TypeAlias

from duologue.core.fence import Fence
from duologue.engines.payloads import Payload
from duologue.engines.ports import Outcome
from duologue.hosts.link_struct import LinkStruct


class RequestSubmitted(LinkStruct, frozen=True):
    """As ``engines.ports.Request``; ``timeout_s`` from now, since clocks differ."""

    id: str
    pipeline: str
    fence: Fence
    first: Payload | None = None
    more_input: bool = False
    credit: int | None = None
    timeout_s: float | None = None


class InputAppended(LinkStruct, frozen=True):
    """Further input of a request."""

    id: str
    payload: Payload


class InputFinished(LinkStruct, frozen=True):
    """No further input for a request."""

    id: str


class RequestCancelled(LinkStruct, frozen=True):
    """Stop a request."""

    id: str


class CreditGranted(LinkStruct, frozen=True):
    """A request may produce so much more."""

    id: str
    credit: int


class RequestRefenced(LinkStruct, frozen=True):
    """What a request produces carries another fence from now on."""

    id: str
    fence: Fence


class RequestProduced(LinkStruct, frozen=True):
    """An output of a request."""

    id: str
    fence: Fence
    payload: Payload


class RequestOver(LinkStruct, frozen=True):
    """The last word on a request."""

    id: str
    fence: Fence
    outcome: Outcome
    code: str = ""
    message: str = ""


ToEngine: TypeAlias = (
    RequestSubmitted
    | InputAppended
    | InputFinished
    | RequestCancelled
    | CreditGranted
    | RequestRefenced
)
FromEngine: TypeAlias = RequestProduced | RequestOver
