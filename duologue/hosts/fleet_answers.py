"""The answers that several session hosts keep, as one: each at the host that owns its name.

A host that comes or goes moves few of them, which are forgotten then. This module must not know
links, nor requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from duologue.core.errors import CapacityError
from duologue.hosts.answers import AnswersPort
from duologue.hosts.faults import host_lost
from duologue.hosts.routing import owner_of


class FleetAnswers:
    """An ``AnswersPort``.

    Args:
        keepers: Returns the hosts that can be reached, each with its tag.
    """

    def __init__(self, keepers: Callable[[], Sequence[tuple[str, AnswersPort]]]) -> None:
        self._keepers = keepers
        self._begun: dict[str, AnswersPort] = {}

    async def begin(self, key: str, fingerprint: bytes) -> bytes | None:
        """Return the answer to a request that was made before; ``None``: it is to be made now."""
        keeper = self._keeper(key)
        known = await keeper.begin(key, fingerprint)
        if known is None:
            self._begun[key] = keeper
        return known

    async def done(self, key: str, answer: bytes) -> None:
        """Keep the answer of a request, where its host still can; it was made in any case."""
        with suppress(CapacityError):
            await self._begun.pop(key).done(key, answer)

    def failed(self, key: str) -> None:
        """Forget a request that was not answered."""
        self._begun.pop(key).failed(key)

    async def keep_spoken(self, answer_id: str, text: str, expires_at: int) -> None:
        """Remember what was said, where there is a host; it was said in any case."""
        with suppress(CapacityError):
            await self._keeper(answer_id).keep_spoken(answer_id, text, expires_at)

    async def spoken(self, answer_id: str) -> str | None:
        """Return what was said, unless it was forgotten."""
        return await self._keeper(answer_id).spoken(answer_id)

    def _keeper(self, name: str) -> AnswersPort:
        keepers = self._keepers()
        if not keepers:
            raise host_lost()
        return keepers[owner_of(name, [tag for tag, _ in keepers])][1]
