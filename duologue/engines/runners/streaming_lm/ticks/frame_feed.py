"""The audio that one session brings to a lockstep model, as counts of samples and moments.

The tick is the clock, never the client: what is missing at a tick is silence, what comes beyond a
stated debt is dropped, and a client whose clock runs faster or slower is followed by taking a few
samples more or less for a frame. This module must not know samples, groups or other sessions.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from duologue.engines.frame_counts import FrameCounts

MERGED_S = 0.001
"""Messages that come closer together count as one, so that memory stays bounded."""

URGENT_FRAMES = 8
"""Over so many frames a client's clock is judged that is behind by more than was planned."""


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """What a model needs, and how far it follows its client.

    Args:
        frame_samples: What one step hears; ``rate_hz``: how many samples a second has.
        debt_samples: What may wait beyond the frame that comes next. A client whose messages are
            longer than this and a frame together loses audio.
        max_slip_samples: How many samples more or less than a frame one frame may be made of.
            A fiftieth is a third of a semitone.
        reserve_s: How long before its tick the last sample of a frame should be there.
        window_frames: Over how many frames the client's clock is judged.
    """

    frame_samples: int = 1920
    rate_hz: int = 24_000
    debt_samples: int = 3840
    max_slip_samples: int = 38
    reserve_s: float = 0.005
    window_frames: int = 25

    @property
    def period_s(self) -> float:
        """From one tick to the next."""
        return self.frame_samples / self.rate_hz


class Cut(NamedTuple):
    """How the frame of one session is made at one tick.

    Args:
        slot: Of the model; ``stay``: which session there, counted over all.
        frame: Which frame of that session, from 0.
        skip: Samples of the input to throw away first: of ticks that were left out.
        take: Samples to take then, in order. They fill ``frame_samples - silence``; a
            difference of a few is slip, and they are fitted.
        silence: Samples of silence; before the audio where ``leads``, else after it.
        since: From when on lateness counts: when the last sample taken had come; the tick itself
            where none is taken.
        in_debt: It had come longer before the tick than the plan of the groups would let it wait:
            the client's audio had been late, or came ahead of its time.
    """

    slot: int
    stay: int
    frame: int
    skip: int
    take: int
    silence: int
    leads: bool
    since: float
    in_debt: bool


class Feed:
    """What one session has sent and no frame has taken.

    Args:
        slot: Of the model; ``stay``: which session there. Both are handed on in each cut.
        longest_wait_s: Of a frame for its tick, as the groups are planned.
    """

    __slots__ = (
        "_dropped_since_cut",
        "_ends_silent",
        "_least_left",
        "_least_wait_s",
        "_limits",
        "_longest_samples",
        "_longest_wait_s",
        "_marks",
        "_received",
        "_seen_frames",
        "_slip_left",
        "_slip_step",
        "_taken",
        "counters",
        "message_samples",
        "not_before",
        "slot",
        "stay",
        "wait_s",
    )

    def __init__(self, slot: int, stay: int, limits: FeedLimits, longest_wait_s: float) -> None:
        self.slot = slot
        self.stay = stay
        self.counters = FrameCounts()
        self.wait_s: float | None = None
        """The least wait of a frame for its tick in the window that has just ended."""
        self.message_samples = 0
        """The longest message of that window."""
        self.not_before = -math.inf
        """Masked at ticks before this moment."""
        self._limits = limits
        self._longest_wait_s = longest_wait_s
        self._received = 0
        self._taken = 0
        # (samples received in all, when): the last sample of each message that still waits.
        self._marks: deque[tuple[int, float]] = deque()
        # To be taken beyond frames (short of them, if negative) in all, and at one tick.
        self._slip_left = 0
        self._slip_step = 0
        self._dropped_since_cut = 0
        self._ends_silent = True
        # The window in which the client's clock is judged.
        self._longest_samples = 0
        self._least_wait_s = math.inf
        self._least_left = self._limits.frame_samples
        self._seen_frames = 0

    @property
    def level_samples(self) -> int:
        """How much waits."""
        return self._received - self._taken

    def arrived(self, samples: int, at: float) -> int:
        """Take note of a message of audio.

        Returns:
            How many samples must be dropped, the oldest first, those of this message among them.
        """
        self._longest_samples = max(self._longest_samples, samples)
        self._received += samples
        if self._marks and at - self._marks[-1][1] < MERGED_S:
            at = self._marks.pop()[1]
        self._marks.append((self._received, at))
        most = self._limits.frame_samples + self._limits.debt_samples
        excess = max(0, self.level_samples - most)
        self._advance(excess)
        self.counters.dropped_samples += excess
        self._dropped_since_cut += excess
        return excess

    def cut(self, due: float, skipped_ticks: int = 0) -> Cut:
        """Make the frame of the tick that was due then, of what has come so far.

        Args:
            skipped_ticks: Left out since the frame before. Their audio goes with them, or the
                session would be behind from now on.
        """
        limits, counters = self._limits, self.counters
        skip = self._skip(skipped_ticks) if skipped_ticks else 0
        self._dropped_since_cut = 0
        take = min(self.level_samples, limits.frame_samples + self._slip())
        silence, leads = 0, False
        if take < limits.frame_samples - limits.max_slip_samples:
            leads = self._ends_silent
            if leads:
                take = self._rested_samples(due)
            silence = limits.frame_samples - take
        arrived_at = self._advance(take)
        since = due if arrived_at is None else arrived_at
        in_debt = due - since > self._longest_wait_s
        cut = Cut(self.slot, self.stay, counters.frames, skip, take, silence, leads, since, in_debt)
        counters.debt_frames += in_debt
        self._count(take, silence)
        self._ends_silent = silence > 0 and not (leads and take)
        if silence or arrived_at is None:
            self._start_window()
            self._slip_left = 0
        else:
            self._judge(due - arrived_at)
        return cut

    def _skip(self, ticks: int) -> int:
        limits, counters = self._limits, self.counters
        due = ticks * limits.frame_samples
        # What had no room meanwhile was not too much of the client's.
        lost = min(due, self._dropped_since_cut)
        skip = min(due - lost, max(0, self.level_samples - limits.frame_samples))
        self._advance(skip)
        counters.skipped_ticks += ticks
        counters.dropped_samples -= lost
        counters.skipped_samples += lost + skip
        return skip

    def realign(self, not_before: float) -> None:
        """Go on with another group, whose ticks the client's messages precede by enough."""
        self.not_before = not_before
        self._slip_left = 0
        self.counters.moves += 1

    def _slip(self) -> int:
        return max(-self._slip_step, min(self._slip_step, self._slip_left))

    def _rested_samples(self, due: float) -> int:
        """Leave what came in the last moment for the next tick, as speech begins.

        So the reserve against jitter is there from the first frame on.
        """
        rested = self._taken
        for received, at in self._marks:
            if at > due - self._limits.reserve_s:
                break
            rested = received
        return rested - self._taken

    def _advance(self, samples: int) -> float | None:
        """Take samples out, and tell when the last of them came."""
        if not samples:
            return None
        self._taken += samples
        while self._marks[0][0] < self._taken:
            self._marks.popleft()
        at = self._marks[0][1]
        if self._marks[0][0] == self._taken:
            self._marks.popleft()
        return at

    def _count(self, take: int, silence: int) -> None:
        counters = self.counters
        counters.frames += 1
        counters.silent_frames += not take
        counters.silence_samples += silence
        if not silence:
            slip = take - self._limits.frame_samples
            planned = min(abs(slip), abs(self._slip_left)) if slip * self._slip_left > 0 else 0
            self._slip_left -= int(math.copysign(planned, self._slip_left))
            counters.squeezed_samples += max(0, slip)
            counters.stretched_samples += max(0, -slip)

    def _start_window(self) -> None:
        self.wait_s = None
        self._least_wait_s = math.inf
        self._least_left = self._limits.frame_samples
        self._seen_frames = 0
        self._longest_samples = 0

    def _judge(self, wait_s: float) -> None:
        """Choose the slip of the next window by the least wait of this one.

        A wait can only be chosen to within one message, since samples come by messages: so it is
        good anywhere between the reserve, and the reserve and one message.
        """
        self.wait_s = None
        if self._slip_left:
            return
        limits = self._limits
        self._least_wait_s = min(self._least_wait_s, wait_s)
        self._least_left = min(self._least_left, self._left_of_message())
        self._seen_frames += 1
        is_behind = self._least_wait_s > self._longest_wait_s
        if self._seen_frames < (URGENT_FRAMES if is_behind else limits.window_frames):
            return
        least_s, message = self._least_wait_s, max(1, self._longest_samples)
        missing = math.ceil((limits.reserve_s - least_s) * limits.rate_hz)
        excess = -missing - message
        # Waits change by whole messages: frames go on to end where messages do.
        if missing > 0:
            self._slip_left = min(-1, self._least_left - math.ceil(missing / message) * message)
        else:
            # What is left of a message has come with what was taken: nothing is gained by waiting.
            later = math.ceil(max(0, excess) / message) * message
            self._slip_left = self._least_left + later
        step = math.ceil(abs(self._slip_left) / limits.window_frames)
        self._slip_step = min(limits.max_slip_samples, step)
        self._start_window()
        self.wait_s, self.message_samples = least_s, message

    def _left_of_message(self) -> int:
        """Tell what is left of the message in which the last frame ended."""
        if not self._marks:
            return 0
        left = self._marks[0][0] - self._taken
        return left if left < self._longest_samples else 0
