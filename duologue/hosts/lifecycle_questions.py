"""What gateways ask the session host about stages that rest, and the answers.

As the methods of ``engines.lifecycle_port.LifecyclePort``. This module must not know how messages
travel.
"""

from __future__ import annotations

from typing import TypeAlias

from duologue.engines.lifecycle_port import EngineLook, Order, StageAck
from duologue.hosts.link_struct import LinkStruct


class AskOrder(LinkStruct, frozen=True):
    """Carry an order out. Answered by ``Acknowledged``, when all replicas have said something."""

    order: Order


class AskStages(LinkStruct, frozen=True):
    """What do the stages look like? Answered by ``StagesSeen``."""


LifecycleQuestion: TypeAlias = AskOrder | AskStages


class Acknowledged(LinkStruct, frozen=True):
    """What replicas said to an order."""

    acks: list[StageAck]


class StagesSeen(LinkStruct, frozen=True):
    """What stages look like."""

    engines: list[EngineLook]


LifecycleReply: TypeAlias = Acknowledged | StagesSeen
