"""What a call machine wants done: the only ways in which it touches the world."""

from __future__ import annotations

from dataclasses import dataclass

from duologue.protocol.commands import Command


@dataclass(frozen=True, slots=True)
class Send:
    """Send a command to the server."""

    command: Command


@dataclass(frozen=True, slots=True)
class SilenceSpeaker:
    """Stop the loudspeaker at once, then call ``CallMachine.silenced``."""


ClientEffect = Send | SilenceSpeaker
