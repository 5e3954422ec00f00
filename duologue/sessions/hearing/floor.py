"""The person's floor: silent, speaking or pausing, from the windows of a voice activity detector.

Time here is audio time (sample indices), so any chunking and any sending speed gives the same
edges. This module must not know responses, interruptions or who else is talking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from duologue.core.audio import ms_to_samples

MAX_WINDOW_MS = 40
"""A detector skips windows while nothing happens; a longer step than this is such a gap."""


class FloorState(Enum):
    """Who the person is to the listener right now."""

    SILENT = "silent"
    SPEAKING = "speaking"
    PAUSING = "pausing"


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorPolicy:
    """When speech begins, pauses and ends.

    Units:
        Milliseconds of audio; thresholds are probabilities.

    Args:
        threshold: A window at or above it is speech.
        release: A window below it is silence; between the two nothing changes.
        onset_ms: Speech in a row that begins a turn; shorter is a click.
        pause_ms: Silence after which the turn may be over.
        silence_ms: Silence that ends the turn whatever else is thought.
        check_ms: Silence after which an end-of-turn model is asked; ``None``: no such model.
        earliest_ms: Silence before which its yes does not count.
        end_threshold: Its probability that counts as yes.
        prefix_ms: Audio kept from before the onset.
        max_turn_ms: A turn never gets longer than this. What is said after it is the next turn,
            told of at its first pause: a noise that never pauses is nobody's.
    """

    threshold: float = 0.5
    release: float = 0.35
    onset_ms: int = 60
    pause_ms: int = 96
    silence_ms: int = 500
    check_ms: int | None = None
    earliest_ms: int = 160
    end_threshold: float = 0.5
    prefix_ms: int = 300
    max_turn_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class SpeechBegan:
    """A turn may have begun; ``start_sample`` includes the prefix padding."""

    start_sample: int


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """Speech ended at ``end_sample``; it may go on."""

    end_sample: int


@dataclass(frozen=True, slots=True)
class SpeechResumed:
    """The pause was none."""

    sample: int


@dataclass(frozen=True, slots=True)
class EndOfTurnWanted:
    """Ask the end-of-turn model about the audio up to ``sample``."""

    sample: int


@dataclass(frozen=True, slots=True)
class TurnOver:
    """The turn that ended at ``end_sample`` is complete; the floor is silent again."""

    end_sample: int


FloorEvent = SpeechBegan | SpeechPaused | SpeechResumed | EndOfTurnWanted | TurnOver


class UserFloor:
    """Turns detector windows into the edges of turns."""

    def __init__(self, policy: FloorPolicy, rate_hz: int) -> None:
        self.state = FloorState.SILENT
        self._rate_hz = rate_hz
        self._last_end = 0
        self._deaf_until = 0
        self._voiced = 0
        self._onset_sample: int | None = None
        self._start_sample = 0
        self._earliest_start = 0
        self._goes_on_from: int | None = None
        self._silence_from: int | None = None
        self._next_check: int | None = None
        self._said_complete = False
        self.set_policy(policy)

    def set_policy(self, policy: FloorPolicy) -> None:
        """Use other settings from the next window on."""
        self._policy = policy

        def samples(duration_ms: float) -> int:
            return ms_to_samples(duration_ms, self._rate_hz)

        self._onset = samples(policy.onset_ms)
        self._pause = samples(policy.pause_ms)
        self._silence = samples(policy.silence_ms)
        self._check = None if policy.check_ms is None else samples(policy.check_ms)
        self._earliest = samples(policy.earliest_ms)
        self._prefix = samples(policy.prefix_ms)
        self._max_turn = samples(policy.max_turn_ms)
        self._max_window = samples(MAX_WINDOW_MS)

    @property
    def judged_until(self) -> int:
        """Where the newest window ended."""
        return self._last_end

    @property
    def voiced_samples(self) -> int:
        """Samples of speech in the current turn, without its pauses."""
        return self._voiced

    @property
    def is_voiced(self) -> bool:
        """The newest window may be speech."""
        return self._silence_from is None

    @property
    def goes_on_from(self) -> int | None:
        """Where the longest turn was cut, if what was said there still has no pause."""
        return self._goes_on_from

    @property
    def onset_sample(self) -> int:
        """Where the newest speech began, without the padding before it."""
        return self._start_sample

    def on_window(self, probability: float, end_sample: int) -> Sequence[FloorEvent]:
        """Take the detector's next window."""
        length = min(end_sample - self._last_end, self._max_window)
        self._last_end = end_sample
        if end_sample <= self._deaf_until:
            return ()
        if self._goes_on_from is not None:
            return self._while_going_on(self._goes_on_from, probability, end_sample, length)
        if self.state is FloorState.SILENT:
            return self._while_silent(probability, end_sample, length)
        if self.state is FloorState.SPEAKING:
            return self._while_speaking(probability, end_sample, length)
        return self._while_pausing(probability, end_sample, length)

    def on_end_of_turn(self, probability: float, end_sample: int) -> Sequence[FloorEvent]:
        """Take the end-of-turn model's answer about the audio up to ``end_sample``.

        One about a pause that is over counts nothing. After a no it is not asked again: with more
        silence to go by, it says yes to half sentences too.
        """
        if self.state is not FloorState.PAUSING or probability < self._policy.end_threshold:
            return ()
        if self._silence_from is None or end_sample <= self._silence_from:
            return ()
        self._said_complete = True
        return self._end_if_complete()

    def force_end(self, end_sample: int | None = None) -> Sequence[FloorEvent]:
        """End the current turn now: the client stopped sending.

        Args:
            end_sample: Where, if what no window has judged yet belongs to the turn too; windows
                that still come of it say nothing any more.
        """
        if self.state is FloorState.SILENT:
            return ()
        if end_sample is not None:
            self._deaf_until = end_sample
            return self._over(end_sample)
        return self._over(self._last_end if self._silence_from is None else self._silence_from)

    def abandon(self, until_sample: int = 0) -> None:
        """Forget the current turn: it was a cough, or the client took the audio itself.

        Args:
            until_sample: Windows of audio before this say nothing any more. A detector lags
                behind, so the audio that the client took may still be on its way.
        """
        self._deaf_until = until_sample
        self._earliest_start = max(self._last_end, until_sample)
        self._enter_silent()

    def _while_silent(self, probability: float, end: int, length: int) -> Sequence[FloorEvent]:
        if probability < self._policy.threshold:
            self._onset_sample = None
            self._voiced = 0
            return ()
        if self._onset_sample is None:
            self._onset_sample = end - length
        self._voiced += length
        if self._voiced < self._onset:
            return ()
        self._start_sample = self._onset_sample
        self._silence_from = None
        self.state = FloorState.SPEAKING
        return (SpeechBegan(max(self._earliest_start, self._onset_sample - self._prefix)),)

    def _while_speaking(self, probability: float, end: int, length: int) -> Sequence[FloorEvent]:
        if probability >= self._policy.threshold:
            self._voiced += length
        if end - self._start_sample >= self._max_turn:
            over = self._over(end)
            self._goes_on_from = end
            return over
        return self._pause_if_due(probability, end, length)

    def _while_going_on(
        self, begin: int, probability: float, end: int, length: int
    ) -> Sequence[FloorEvent]:
        """Past the longest turn: people pause before long and go on, a noise does neither."""
        if probability >= self._policy.threshold:
            self._voiced += length
        is_speech = self._voiced >= self._onset
        paused = self._pause_if_due(probability, end, length)
        if not paused:
            if end - begin >= self._max_turn:
                self._goes_on_from, self._voiced = end, 0
            return ()
        self._goes_on_from = None
        if not is_speech:
            self._enter_silent()
            return ()
        self._start_sample = begin
        return (SpeechBegan(begin), *paused)

    def _pause_if_due(self, probability: float, end: int, length: int) -> Sequence[FloorEvent]:
        if probability >= self._policy.release:
            self._silence_from = None
            return ()
        if self._silence_from is None:
            self._silence_from = end - length
        if end - self._silence_from < self._pause:
            return ()
        self.state = FloorState.PAUSING
        self._said_complete = False
        self._next_check = None if self._check is None else self._silence_from + self._check
        return (
            SpeechPaused(self._silence_from),
            *self._check_if_due(end),
            *self._end_if_silent(end),
        )

    def _while_pausing(self, probability: float, end: int, length: int) -> Sequence[FloorEvent]:
        if probability >= self._policy.threshold:
            self._voiced += length
            self._silence_from = None
            self.state = FloorState.SPEAKING
            return (SpeechResumed(end - length),)
        if over := self._end_if_complete() or self._end_if_silent(end):
            return over
        return self._check_if_due(end)

    def _check_if_due(self, end: int) -> Sequence[FloorEvent]:
        if self._next_check is None or end < self._next_check:
            return ()
        self._next_check = None
        return (EndOfTurnWanted(end),)

    def _end_if_complete(self) -> Sequence[FloorEvent]:
        assert self._silence_from is not None
        if self._said_complete and self._last_end - self._silence_from >= self._earliest:
            return self._over(self._silence_from)
        return ()

    def _end_if_silent(self, end: int) -> Sequence[FloorEvent]:
        assert self._silence_from is not None
        if end - self._silence_from >= self._silence:
            return self._over(self._silence_from)
        return ()

    def _over(self, end_sample: int) -> Sequence[FloorEvent]:
        self._earliest_start = end_sample
        self._enter_silent()
        return (TurnOver(end_sample),)

    def _enter_silent(self) -> None:
        self.state = FloorState.SILENT
        self._voiced = 0
        self._onset_sample = None
        self._goes_on_from = None
        self._silence_from = None
        self._next_check = None
        self._said_complete = False
