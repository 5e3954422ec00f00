"""What can happen to a session, as one closed union: the inputs of its machine."""

from __future__ import annotations

from dataclasses import dataclass

from duologue.engines.ports import EngineEvent
from duologue.protocol.commands import Command
from duologue.protocol.events import ErrorBody


@dataclass(frozen=True, slots=True)
class Rejected:
    """The client sent something that is no command; the edge knows what is wrong with it."""

    error: ErrorBody


SessionInput = Command | Rejected | EngineEvent
"""What the client said, and what came out of the engine. Time passing is ``on_timer``."""
