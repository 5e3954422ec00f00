"""Settings of the route for robots."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from duologue.config import Section


class RobotSettings(Section):
    """Robots that ask a policy what to do, over ``/v1/realtime/robot/openpi``."""

    max_connections: Annotated[int, Field(ge=1, le=10_000)] = 16
    """Robots that may be connected; further ones are refused with 503. Each holds one of the slots
    of ``gateway.http.max_requests`` while it is connected: keep room for other requests."""

    max_message_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 64 << 20
    """An observation must be smaller; a larger one ends its connection with 1009."""

    deadline_s: Annotated[float, Field(gt=0, le=3600)] = 2.0
    """An observation whose actions are not there after so long is given up: they would be about a
    world that has changed."""

    idle_timeout_s: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    """A robot that sends nothing for so long, and waits for nothing, is let go. 0: never."""
