"""Which of a model's slots a conversation uses, so that the slot's cache already holds most of it.

Pure bookkeeping; must not know threads or models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duologue.engines.payloads import ChatMessage

_FORGOTTEN_AFTER = 8
"""A conversation that has not come back while each slot was used so often has ended."""


@dataclass(eq=False, slots=True)
class Slot:
    """Room for one conversation.

    Args:
        cached: The messages that its cache holds.
        busy: A job that is wanted runs in it. One that is being stopped does not count: the next
            one waits the moment until it has.
        used: When it was last taken, counted in uses of all slots.
    """

    index: int
    cached: tuple[ChatMessage, ...] = ()
    busy: bool = False
    used: int = 0


def best_slot(slots: Sequence[Slot], messages: Sequence[ChatMessage], uses: int) -> Slot | None:
    """Return the free slot in which least has to be read, now or when others come back.

    Args:
        messages: What is to be read.
        uses: How often slots were taken so far.
    """
    free = [slot for slot in slots if not slot.busy]
    oldest = uses - _FORGOTTEN_AFTER * len(slots)

    def saved(slot: Slot) -> tuple[int, int]:
        shared = _shared_chars(slot.cached, messages)
        lost = sum(len(message.content) for message in slot.cached) - shared
        return shared - (lost if slot.used > oldest else 0), -slot.used

    return max(free, key=saved, default=None)


def _shared_chars(cached: Sequence[ChatMessage], messages: Sequence[ChatMessage]) -> int:
    """Count what need not be read again; messages that were left out since do no harm."""
    shared = position = 0
    for new in messages:
        try:
            position = cached.index(new, position) + 1
        except ValueError:
            return shared + _common_start(cached[position:], new)
        shared += len(new.content)
    return shared


def _common_start(cached: Sequence[ChatMessage], new: ChatMessage) -> int:
    if not cached or cached[0].role != new.role:
        return 0
    old = cached[0].content
    pairs = enumerate(zip(old, new.content, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(old), len(new.content)))
