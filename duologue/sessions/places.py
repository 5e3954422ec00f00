"""How many sessions there may be: as many as were set, and as the models can hold.

A session of a model that steps all its calls at every tick holds a place of its pipeline for as
long as it lasts, and how many of these there are, the pipeline's workers find out when they start.
So who comes when all are taken is refused at the door, and not after he has been let in. This
module must not know sessions or workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from duologue.core.errors import CapacityError

RETRY_AFTER_S = 5.0


class Places:
    """The places of this process.

    Args:
        most: As was set.
        resident: For each model, the pipeline of which a session holds a place; "": none.
        slots: How many places a pipeline has, as far as is known.
    """

    def __init__(self, most: int, resident: Mapping[str, str], slots: Callable[[str], int]) -> None:
        self._most = most
        self._resident = resident
        self._slots = slots
        self._models: dict[str, str] = {}
        self._kept = 0

    @property
    def most(self) -> int:
        """How many sessions there may be, whatever model they want."""
        pipelines = set(self._resident.values())
        if "" in pipelines or not pipelines:
            return self._most
        return min(self._most, sum(map(self._slots, pipelines)))

    @property
    def kept(self) -> int:
        """Places of sessions that their clients have yet to describe."""
        return self._kept

    @property
    def fill(self) -> float:
        """How full it is; 1 at the limit."""
        return (len(self._models) + self._kept) / max(1, self.most)

    def check(self, model: str | None = None) -> None:
        """Do nothing if a session could be opened now.

        Args:
            model: Of which model; ``None``: of any.

        Raises:
            CapacityError: There is no place.
        """
        limit, taken = self.most, len(self._models) + self._kept
        if taken >= limit:
            raise CapacityError(
                f"{taken} sessions are open, the limit is {limit}", retry_after_s=RETRY_AFTER_S
            )
        pipeline = self._resident.get(model, "") if model is not None else ""
        if not pipeline:
            return
        held = Counter(self._resident.get(each, "") for each in self._models.values())[pipeline]
        if held >= self._slots(pipeline):
            raise CapacityError(
                f"{held} sessions of {model} are open, and its workers hold no more in time",
                retry_after_s=RETRY_AFTER_S,
            )

    def keep(self) -> None:
        """Keep a place for a session that its client has yet to describe.

        Raises:
            CapacityError: There is none.
        """
        self.check()
        self._kept += 1

    def give_up(self) -> None:
        """Keep one place less: the session is opened now, or never."""
        self._kept -= 1

    def take(self, session_id: str, model: str) -> None:
        """A session has begun; one that asks no model names none of them."""
        self._models[session_id] = model

    def leave(self, session_id: str) -> None:
        """A session is over."""
        del self._models[session_id]
