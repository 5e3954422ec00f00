"""``duologue replay``: what happened in a recorded call."""

from duologue.commands.replay.command import register, run

__all__ = ["register", "run"]
