"""What a client wants of a conversation that is too long for the model.

This module must not know prompts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What becomes of a conversation that is too long for the model.

    The client's instructions and tools always stay; of the rest the oldest is left out, a call
    never without its output.

    Args:
        allowed: Something may be left out. Else the answer fails with
            ``context_length_exceeded``.
        keep: Share of the room that is used after something was left out, so that the beginning
            of the prompt, and with it a prefix cache, lasts for some turns. ``None``: as the
            plugin likes.
        max_tokens: The room for the conversation after the instructions; ``None``: all there is.
    """

    allowed: bool = True
    keep: float | None = None
    max_tokens: int | None = None


DEFAULT_RETENTION = Retention()
