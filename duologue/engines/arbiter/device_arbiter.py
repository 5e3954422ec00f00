"""Who may use a device that realtime and batch work share: time in slices, memory in bytes. Pure.

Realtime workers never wait: they say when their next step begins, when its output must be ready and
how long it takes, and run it. Batch workers ask before each slice. A slice is granted while no
realtime step runs, at most half as long as the time that is then left over. This module must not
know processes, memory or models; ``now`` is handed in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

RETRY_S = 0.001
"""When to ask again where nothing tells how long another worker still takes."""

FORGOTTEN_S = 0.25
"""A worker that waits, and has not asked for so long after it should have, waits no more."""


@dataclass(frozen=True, slots=True)
class Beat:
    """What a realtime worker says of its next step, or of the one that runs.

    Args:
        due: When it begins; ``deadline``: when it must have ended; ``inf``: nothing is to come.
        step_s: How long it takes, as measured.
        busy_until: When a step that runs now should end; 0: none runs.
    """

    due: float = math.inf
    deadline: float = math.inf
    step_s: float = 0.0
    busy_until: float = 0.0


IDLE = Beat()


@dataclass(frozen=True, slots=True)
class Grant:
    """Run now.

    Args:
        slice_s: For so long at most.
    """

    slice_s: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again.

    Args:
        until: When; before that the answer is most likely the same.
    """

    until: float


@dataclass(slots=True)
class Seat:
    """One worker.

    Args:
        is_batch: It asks; the others only say when they run.
        used_s: Time of the device that it had; who has had less goes first.
        waits_since: When it began to wait for a slice, and ``again_at``: when it is to ask again;
            0: it waits for none.
        cost_s: Of what it waits for.
        began_at: When its slice began, and ``runs_until``: when that should end; 0: none runs.
        resident_bytes: What it holds for as long as it lives; ``transient_bytes``: for its jobs.
        wants_since: When it began to wait for bytes, and ``wanted_at``: when it last asked for
            them; 0: it waits for none.
    """

    is_batch: bool = False
    beat: Beat = IDLE
    used_s: float = 0.0
    waits_since: float = 0.0
    again_at: float = 0.0
    cost_s: float = 0.0
    began_at: float = 0.0
    runs_until: float = 0.0
    resident_bytes: int = 0
    transient_bytes: int = 0
    wants_since: float = 0.0
    wanted_at: float = 0.0

    def waits(self, now: float) -> bool:
        """It wants a slice, and will ask again soon."""
        return self.waits_since > 0 and now <= self.again_at + FORGOTTEN_S

    def wants(self, now: float) -> bool:
        """It wants bytes, and asks again and again."""
        return self.wants_since > 0 and now <= self.wanted_at + FORGOTTEN_S


@dataclass(slots=True)
class DeviceArbiter:
    """One device.

    Args:
        period_s: The shortest of the periods in which realtime workers step; ``inf``: there are
            none.
        budget_bytes: Memory for all workers together; 0: as much as they like.
        seats: Of its workers, by number.
    """

    period_s: float = math.inf
    budget_bytes: int = 0
    seats: dict[int, Seat] = field(default_factory=dict)

    @property
    def longest_slice_s(self) -> float:
        """No slice is longer: what cannot be cut so short never runs here."""
        return self.period_s / 2

    # Time

    def slack_s(self, now: float) -> float:
        """Time that batch work could take now and every realtime step would still be in time.

        The steps that are to come follow each other in the order of their deadlines.
        """
        left_s = math.inf
        steps_s = 0.0
        for beat in sorted(self._beats(now), key=lambda each: each.deadline):
            steps_s += beat.step_s
            left_s = min(left_s, beat.deadline - now - steps_s)
        return left_s

    def ask(self, number: int, cost_s: float, now: float) -> Grant | Wait:
        """Ask for a slice.

        Args:
            cost_s: The least that a slice takes, as measured.
        """
        seat = self.seats[number]
        if not seat.waits(now):
            seat.used_s = max(seat.used_s, self._least_used_s(number, now))
            seat.waits_since = now
        seat.cost_s = cost_s
        answer = self._answer(number, cost_s, now)
        if isinstance(answer, Grant):
            seat.waits_since = 0.0
            seat.began_at, seat.runs_until = now, now + min(answer.slice_s, self.longest_slice_s)
        else:
            seat.again_at = answer.until
        return answer

    def ended(self, number: int, now: float) -> None:
        """A slice has ended."""
        seat = self.seats[number]
        if seat.runs_until:
            seat.used_s += max(0.0, now - seat.began_at)
            seat.runs_until = 0.0

    def withdraw(self, number: int) -> None:
        """A worker wants no slice any more."""
        self.seats[number].waits_since = 0.0

    # Bytes

    @property
    def held_bytes(self) -> int:
        """What all workers hold."""
        return sum(seat.resident_bytes + seat.transient_bytes for seat in self.seats.values())

    def room_bytes(self) -> float:
        """The most that one job could ever have: what no worker holds for good."""
        if not self.budget_bytes:
            return math.inf
        return self.budget_bytes - sum(seat.resident_bytes for seat in self.seats.values())

    def take_bytes(
        self, number: int, size_bytes: int, now: float, *, for_good: bool = False
    ) -> bool:
        """Take memory for a job, or wait for it; who waits longest comes first.

        Args:
            for_good: It is for the worker's model, and is held for as long as the worker lives.

        Returns:
            Whether it was taken. It must not be more than ``room_bytes``.
        """
        seat = self.seats[number]
        if not seat.wants(now):
            seat.wants_since = now
        seat.wanted_at = now
        if not self._bytes_fit(number, size_bytes, now):
            return False
        if for_good:
            seat.resident_bytes += size_bytes
        else:
            seat.transient_bytes += size_bytes
        seat.wants_since = 0.0
        return True

    def give_bytes(self, number: int, size_bytes: int) -> None:
        """Give memory of a job back."""
        self.seats[number].transient_bytes -= size_bytes

    # In private

    def _beats(self, now: float) -> Iterator[Beat]:
        """What realtime workers still mean.

        One that has not stepped a period after its deadline had nothing to step.
        """
        for seat in self.seats.values():
            if not seat.is_batch and now <= seat.beat.deadline + self.period_s:
                yield seat.beat

    def _answer(self, number: int, cost_s: float, now: float) -> Grant | Wait:
        if math.isinf(self.period_s):
            return Grant(math.inf)  # nobody is to be in time: memory is all that is shared
        busy_until = self._busy_until(number)
        if busy_until is not None:
            return Wait(max(busy_until, now + RETRY_S))
        slice_s = min(self.period_s, self.slack_s(now)) / 2
        if cost_s > slice_s:
            return Wait(max(self._next_end(now), now + RETRY_S))
        if self._is_others_turn(number, slice_s, now):
            return Wait(now + RETRY_S)
        return Grant(slice_s)

    def _busy_until(self, number: int) -> float | None:
        """When whoever runs now should be done; ``None``: nobody runs."""
        ends = [
            end
            for other, seat in self.seats.items()
            if other != number and (end := seat.runs_until or seat.beat.busy_until)
        ]
        return max(ends, default=None)

    def _next_end(self, now: float) -> float:
        """When the next realtime step should have ended; soon, if one may come at any moment."""
        ends = [
            end if (end := beat.due + beat.step_s) > now else now + self.period_s / 8
            for beat in self._beats(now)
            if not math.isinf(beat.deadline)
        ]
        return min(ends, default=now)

    def _is_others_turn(self, number: int, slice_s: float, now: float) -> bool:
        mine = self._rank(number)
        return any(
            seat.waits(now) and seat.cost_s <= slice_s and self._rank(other) < mine
            for other, seat in self.seats.items()
            if other != number
        )

    def _rank(self, number: int) -> tuple[float, float, int]:
        seat = self.seats[number]
        return seat.used_s, seat.waits_since, number

    def _least_used_s(self, number: int, now: float) -> float:
        """Where a worker begins that comes, or comes back: it is owed nothing for its absence."""
        active = [
            seat.used_s
            for other, seat in self.seats.items()
            if other != number and seat.is_batch and (seat.waits(now) or seat.runs_until)
        ]
        return min(active, default=0.0)

    def _bytes_fit(self, number: int, size_bytes: int, now: float) -> bool:
        if not self.budget_bytes:
            return True
        if self.held_bytes + size_bytes > self.budget_bytes:
            return False
        since = self.seats[number].wants_since
        return not any(
            other != number and seat.wants(now) and (seat.wants_since, other) < (since, number)
            for other, seat in self.seats.items()
        )
