"""Which sessions of a lockstep model are stepped when: the clock of a frame engine.

Each group of sessions has a tick of its own in every period; at it, each of them gets exactly one
frame, made of what has come by then. A tick that the model could not keep is made up for within
the period or left out: nothing is ever behind by more. This module must not know samples, models
or a clock: the loop beside the runner tells it what has come, asks ``next_batch`` and steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from duologue.core.errors import CapacityError
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.runners.streaming_lm.ticks.frame_feed import (
    Cut,
    Feed,
    FeedLimits,
)
from duologue.engines.runners.streaming_lm.ticks.frame_groups import GroupPlan

LATE_S = 0.080
"""A frame is late if it is ready longer than this after its last sample has come."""

RETRY_AFTER_S = 5.0
"""Calls end now and then; when the next one does, nobody knows."""


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """One step of one group. Every slot without a cut is masked.

    Args:
        tick: Of the group, counted from the start; grows, with gaps where ticks were left out.
        due: When it was to begin.
    """

    group: int
    tick: int
    due: float
    cuts: list[Cut]


@dataclass(eq=False, slots=True)
class _Group:
    number: int
    phase_s: float
    tick: int = 0
    members: dict[int, Feed] = field(default_factory=dict)
    frozen: dict[int, Feed] = field(default_factory=dict)

    def size(self) -> int:
        return len(self.members) + len(self.frozen)


class FrameDeadline:
    """The clock, the groups and their sessions.

    Args:
        plan: How many groups, and how large.
        limits: Of each session's input.
        start: When the first period begins.
    """

    def __init__(self, plan: GroupPlan, limits: FeedLimits, start: float) -> None:
        self._limits = limits
        self._period_s = limits.period_s
        self._start = start
        self._rows = plan.rows
        self._longest_wait_s = plan.longest_wait_s
        self._spacing_samples = limits.frame_samples // plan.groups
        self._groups = [
            _Group(number, number * self._period_s / plan.groups) for number in range(plan.groups)
        ]
        self._places: dict[int, tuple[_Group, Feed]] = {}
        self._stays = 0
        self._gone = FrameCounts()

    def join(
        self, slot: int, now: float, arrives_at: float | None = None, every_s: float | None = None
    ) -> int:
        """Let a session in; its first frame is that of its group's next tick.

        Args:
            slot: A free one.
            arrives_at: When a message of its audio came, and ``every_s``: how long one is. With
                both it gets the group whose tick follows soonest, else the smallest one.

        Returns:
            The number of this stay, as in its cuts.

        Raises:
            CapacityError: All groups are full.
        """
        assert slot not in self._places, f"slot {slot} is taken"
        open_groups = [group for group in self._groups if group.size() < self._rows]
        if not open_groups:
            most = len(self._groups) * self._rows
            raise CapacityError(
                f"all {most} places of this model are taken", retry_after_s=RETRY_AFTER_S
            )

        def preference(group: _Group) -> tuple[float, int]:
            if arrives_at is None or every_s is None:
                return 0.0, group.size()
            ready = arrives_at + self._limits.reserve_s
            wait_s = (self._start + group.phase_s - ready) % every_s
            return round(wait_s, 3), group.size()

        group = min(open_groups, key=preference)
        self._stays += 1
        feed = Feed(slot, self._stays, self._limits, self._longest_wait_s)
        self._places[slot] = (group, feed)
        self._let_in(group, feed, now)
        return feed.stay

    def arrived(self, slot: int, samples: int, at: float) -> int:
        """Take note of audio for a slot.

        Returns:
            How many samples of its input must be dropped, the oldest first.
        """
        group, feed = self._places[slot]
        if slot in group.frozen:
            feed.counters.dropped_samples += samples
            return samples
        return feed.arrived(samples, at)

    def freeze(self, slot: int) -> None:
        """Mask a slot until it is thawed; what comes for it meanwhile is dropped."""
        group, _ = self._places[slot]
        if feed := group.members.pop(slot, None):
            group.frozen[slot] = feed

    def thaw(self, slot: int, now: float) -> None:
        """Let a frozen slot take part again, from its group's next tick on."""
        group, _ = self._places[slot]
        if feed := group.frozen.pop(slot, None):
            self._let_in(group, feed, now)

    def leave(self, slot: int) -> FrameCounts:
        """Free a slot, at any moment, and return what its session counted."""
        group, feed = self._places.pop(slot)
        group.members.pop(slot, None)
        group.frozen.pop(slot, None)
        self._gone.add(feed.counters)
        return feed.counters

    def next_batch(self, now: float) -> FrameBatch | float | None:
        """Return the step to make now, else when to ask again; ``None``: when somebody joins.

        Until that moment the device is free, for prefill or other work that ends before it.
        """
        while True:
            group = min(
                (each for each in self._groups if each.members), key=self._due, default=None
            )
            if group is None:
                return None
            due = self._due(group)
            if now < due:
                return due
            behind = int((now - due) / self._period_s)
            group.tick += behind
            due = self._due(group)
            batch = FrameBatch(group.number, group.tick, due, self._cuts(group, due, behind))
            group.tick += 1
            if batch.cuts:
                return batch

    def finished(self, batch: FrameBatch, now: float) -> None:
        """Take note that the outputs of a batch are ready."""
        for cut in batch.cuts:
            place = self._places.get(cut.slot)
            if place is None or place[1].stay != cut.stay or now - cut.since <= LATE_S:
                continue
            counters = place[1].counters
            counters.late_frames += 1
            counters.late_in_debt += cut.in_debt

    def group_of(self, slot: int) -> int:
        """Return the group that a slot is stepped with."""
        return self._places[slot][0].number

    def counters(self, slot: int) -> FrameCounts:
        """Return what the session of a slot has counted so far."""
        return self._places[slot][1].counters

    def totals(self) -> FrameCounts:
        """Add up what all sessions have counted, those that have left as well."""
        totals = FrameCounts()
        totals.add(self._gone)
        for _, feed in self._places.values():
            totals.add(feed.counters)
        return totals

    def _due(self, group: _Group) -> float:
        return self._start + group.phase_s + group.tick * self._period_s

    def _cuts(self, group: _Group, due: float, behind: int) -> list[Cut]:
        cuts = []
        stray: list[Feed] = []
        for feed in group.members.values():
            if feed.not_before > due:
                continue
            # A tick before it came in is none that it missed.
            missed = min(behind, int((due - feed.not_before) / self._period_s))
            cuts.append(feed.cut(due, missed))
            if feed.wait_s is not None and feed.message_samples > self._spacing_samples:
                stray.append(feed)
        for feed in stray:
            self._realign(group, feed, due)
        return cuts

    def _realign(self, group: _Group, feed: Feed, due: float) -> None:
        """Move a session whose long messages have wandered away from its group's ticks.

        Slip would have to fill or empty the length of a message first.
        """
        assert feed.wait_s is not None
        spacing_s = self._period_s / len(self._groups)
        reserve_s = self._limits.reserve_s
        off_s = feed.wait_s - reserve_s
        if 0 <= off_s <= spacing_s + reserve_s / 2:
            return
        for other in self._groups:
            shift_s = (off_s + other.phase_s - group.phase_s) % self._period_s - off_s
            if off_s + shift_s < spacing_s and other is not group and other.size() < self._rows:
                del group.members[feed.slot]
                feed.realign(due + self._period_s + shift_s - spacing_s / 2)
                self._places[feed.slot] = (other, feed)
                self._let_in(other, feed, due)
                return

    def _let_in(self, group: _Group, feed: Feed, now: float) -> None:
        if not group.members:
            # Nobody waited for the ticks that have passed meanwhile.
            passed = int((now - self._start - group.phase_s) // self._period_s)
            group.tick = max(group.tick, passed + 1)
        feed.not_before = max(feed.not_before, now)
        group.members[feed.slot] = feed
