"""Is what the microphone hears the assistant's own voice? By likeness to what was played.

Both sides are looked at as levels of bands, a hundred times a second. What rises and falls in the
bands as the played speech did, up to half a second before, is its echo. That needs no settling and
no model of the room; a person who talks over the echo breaks the likeness. Nothing is computed but
where a detector takes something for speech while, or just after, something is played.

Once it knows the delay it also knows how loud the echo is in each band: what is louder is somebody.
It does not take the echo out of the audio, and does not find one that comes later than
``MAX_DELAY_S``, that is weaker than the noise of the room, or of steady tones. Somebody who speaks
more softly than the echo is taken for it. This module must not know detectors, turns or clocks.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from duologue.codecs import pcm_to_float
from duologue.core.audio import SAMPLE_BYTES, AudioFrame
from duologue.sessions.echo.band_levels import (
    BANDS,
    ROWS_PER_S,
    SILENCE,
    Floats,
    bank_for,
    likeness_at_delays,
)

MAX_DELAY_S = 0.5
"""From when speech should be heard to when it comes back: buffers, the way, the room."""

LIKENESS_ROWS = 32
"""So much is compared: shorter, and two voices are alike by chance too often."""

_LAGS = int(MAX_DELAY_S * ROWS_PER_S)
_ROWS_KEPT = 400
_KEPT_S = _ROWS_KEPT / ROWS_PER_S
_TAIL_S = MAX_DELAY_S + LIKENESS_ROWS / ROWS_PER_S
_SLACK_ROWS = 0.01
"""A run begins at whole samples, so by half of one its rows may begin later than they should. Those
of its next piece are the next ones all the same."""

_RUN_GAP_S = 0.002
"""Speech that begins so soon after the last is the same run of samples; clocks are rounded."""

FOUND = 0.8
"""Likeness at any delay that makes an echo. Of two voices, one comparison in a hundred has it."""

OTHER_SHARE = 0.12
"""Share of the newest levels that must be louder than the echo can be: somebody talks over it."""

_RECENT_ROWS = 10
_MARGIN = 1.6
"""So much louder (in nepers of power, 7 dB): what is predicted is never exact."""

_AUDIBLE = 2.0
"""Level below which a band says nothing."""

_DECAY = 0.3
_DECAY_AFTER = 4
_ECHO_ROWS = 16
"""A room goes on sounding: the echo of a row dies away by 1.3 dB a row, after the first few."""

_DECAYS = (_DECAY * np.maximum(0, np.arange(_ECHO_ROWS - 1, -1, -1) - _DECAY_AFTER)).astype(
    np.float32
)

_COMPARE_EVERY_S = 0.25
"""Once the delay is known, it is looked for again so often."""

_LEARNT_ROWS = 5
_LEARNING_RATE = 0.3

_NEAR = 3
"""Rows by which the delay of a call may drift from one comparison to the next."""

_CONFIRM_S = 0.3
_SUSPECT_S = 2.0
"""A delay is known once it was found twice, so far apart at least and at most."""

_STALE_S = 30.0
"""A delay that was not found again for so long is forgotten: devices change in mid-call."""

_LATE_S = 0.3
"""Audio that comes so much later than before was held up on its way, or the client had stopped
meanwhile: only a likeness tells which."""

_MOST_LATE_S = _KEPT_S - _TAIL_S
"""Of audio that is later than this, nobody knows any more what was played when it was heard."""

_SETTLING_RATE = 0.02


class _Played(NamedTuple):
    """A run of samples, and when it is heard."""

    pcm: bytes
    starts_at: float
    ends_at: float


class EchoJudge:
    """Compares one session's microphone with what it was played.

    Args:
        played_hz: Rate of what is played.
        heard_hz: Rate of the microphone's PCM.

    Units:
        Times are seconds on the session's clock.
    """

    def __init__(self, played_hz: int, heard_hz: int) -> None:
        self._played_hz = played_hz
        self._s_per_byte = 1 / (played_hz * SAMPLE_BYTES)
        self._heard_bank = bank_for(heard_hz)
        self._played_bank = bank_for(played_hz)
        self._audible_until = -math.inf
        self._waiting: deque[_Played] = deque()
        self._run = np.zeros(0, np.float32)
        self._run_at = -math.inf
        """When the first sample of the run is heard."""
        self._rows = np.zeros((_ROWS_KEPT, BANDS), np.float32)
        self._slots = np.full(_ROWS_KEPT, -1, np.int64)
        self._lag: int | None = None
        self._lag_at = -math.inf
        self._suspected = 0
        self._suspected_at = -math.inf
        self._learnt = False
        self._gains = np.zeros(BANDS, np.float32)
        self._compared_at = -math.inf
        self._clock_offset = math.inf

    @property
    def heard_samples(self) -> int:
        """How much of the microphone a comparison takes."""
        return self._heard_bank.samples(LIKENESS_ROWS)

    def arrived(self, clock_offset: float) -> None:
        """Audio has come from the microphone: the fastest messages tell when samples were heard.

        Args:
            clock_offset: What the newest sample's time is ahead of the sample clock, in seconds.
        """
        self._clock_offset = min(self._clock_offset, clock_offset)

    def listens(self, end_s: float, clock_offset: float, audible_until: float) -> bool:
        """Tell whether an echo may be heard at all.

        Args:
            end_s: Where what is heard ends, on the sample clock. When it comes does not matter: it
                may have been held up until long after the answer.
            clock_offset: As in ``arrived``.
            audible_until: When what was sent will have been heard; earlier than it was, where
                something was taken back.
        """
        if audible_until < self._audible_until - _RUN_GAP_S:
            self._stopped(max(audible_until, 0.0))
        return min(self._clock_offset, clock_offset) + end_s < self._audible_until + _TAIL_S

    def played(self, pcm: bytes, starts_at: float, now: float) -> None:
        """Note speech that is heard from ``starts_at`` on."""
        if starts_at < self._audible_until - _RUN_GAP_S:
            # What was to come instead was taken back.
            self._stopped(starts_at)
        self._audible_until = ends_at = starts_at + len(pcm) * self._s_per_byte
        self._waiting.append(_Played(pcm, starts_at, ends_at))
        if self._waiting[0].ends_at < now - _KEPT_S:
            self._forget_before(now - _KEPT_S)

    def is_echo(self, heard: AudioFrame, clock_offset: float) -> bool:
        """Judge the end of what the microphone heard.

        Args:
            heard: The last ``heard_samples`` of it; with less there is no telling.
            clock_offset: As in ``arrived``.
        """
        if heard.samples < self.heard_samples:
            return False
        samples = pcm_to_float(heard.pcm)[-self.heard_samples :]
        end_s = heard.end_sample / heard.rate_hz
        late = clock_offset - self._clock_offset
        if _LATE_S < late <= _MOST_LATE_S:
            return self._is_late_echo(samples, end_s, clock_offset)
        # Clocks drift, so the fastest message of long ago is worth less and less.
        drifts = 0 <= late <= _LATE_S
        self._clock_offset = self._clock_offset + _SETTLING_RATE * late if drifts else clock_offset
        return self._judge(samples, self._clock_offset + end_s)

    def _judge(self, samples: Floats, heard_at: float) -> bool:
        self._take_in(heard_at)
        played = self._played_before(heard_at)
        if heard_at > self._lag_at + _STALE_S:
            self._lag = None
        if self._lag is not None and heard_at < self._compared_at + _COMPARE_EVERY_S:
            # All that is new are the last few rows.
            newest = samples[-self._heard_bank.samples(_RECENT_ROWS) :]
            return self._explains(self._heard_bank.levels(newest), played)
        self._compared_at = heard_at
        levels = self._heard_bank.levels(samples)
        likeness = likeness_at_delays(levels, played)
        if likeness is None:
            return False
        lag = int(likeness.argmax())
        found = bool(likeness[lag] >= FOUND)
        if found:
            self._note(lag, heard_at)
        if self._lag is None or (found and abs(lag - self._lag) > _NEAR):
            return found
        if found:
            self._learn(levels, _delayed(played, lag))
        return self._explains(levels[-_RECENT_ROWS:], played)

    def _is_late_echo(self, samples: Floats, end_s: float, clock_offset: float) -> bool:
        """Look at both times at which it may have been heard; the one with an echo is right."""
        levels = self._heard_bank.levels(samples)
        self._take_in(clock_offset + end_s)
        for offset in (self._clock_offset, clock_offset):
            played = self._played_before(offset + end_s)
            likeness = likeness_at_delays(levels, played)
            if likeness is None:
                return False
            lag = int(likeness.argmax())
            found = bool(likeness[lag] >= FOUND)
            if found:
                self._clock_offset = offset
                self._note(lag, offset + end_s)
            if self._lag is not None and abs(lag - self._lag) <= _NEAR:
                # It is where it was before, so less of a likeness will do.
                return found or self._explains(levels[-_RECENT_ROWS:], played)
            if found:
                return True
        return False

    def _stopped(self, now: float) -> None:
        """Forget what would have been heard after ``now``."""
        self._audible_until = min(self._audible_until, now)
        while self._waiting and self._waiting[-1].starts_at >= now:
            self._waiting.pop()
        if self._waiting and self._waiting[-1].ends_at > now:
            last = self._waiting[-1]
            samples = int((now - last.starts_at) * self._played_hz)
            self._waiting[-1] = _Played(last.pcm[: samples * SAMPLE_BYTES], last.starts_at, now)
        kept = max(0, int((now - self._run_at) * self._played_hz)) if len(self._run) else 0
        self._run = self._run[:kept]
        self._slots[self._slots > int(now * ROWS_PER_S)] = -1

    def _learn(self, heard: Floats, played: Floats) -> None:
        """Note how loud the echo is in each band."""
        active = played > _AUDIBLE
        counts = active.sum(0)
        known = counts >= _LEARNT_ROWS
        if not known.any():
            return
        gains = ((heard - played) * active).sum(0) / np.maximum(counts, 1)
        gains[~known] = np.median(gains[known])
        change = gains - self._gains if self._learnt else gains
        self._gains = self._gains + (_LEARNING_RATE if self._learnt else 1.0) * change
        self._learnt = True

    def _explains(self, newest: Floats, played: Floats) -> bool:
        """Tell whether the echo alone can be as loud as what is heard.

        Shapes:
            newest: [_RECENT_ROWS, B]
        """
        assert self._lag is not None
        last = len(played) - max(0, self._lag - 2)
        rows = played[last - _RECENT_ROWS - _ECHO_ROWS + 1 : last]
        # [_RECENT_ROWS, B, _ECHO_ROWS]: of each row, what still sounds of those before it.
        sounding = sliding_window_view(rows, _ECHO_ROWS, axis=0) - _DECAYS
        limit = np.maximum(sounding.max(2) + self._gains, _AUDIBLE) + _MARGIN
        loud = int(np.count_nonzero(newest > limit))
        return not self._learnt or loud < OTHER_SHARE * newest.size

    def _note(self, lag: int, heard_at: float) -> None:
        """Note a delay; it is known when it is found again after a while."""
        if self._lag is not None and abs(lag - self._lag) <= _NEAR:
            self._lag, self._lag_at = lag, heard_at
            return
        if abs(lag - self._suspected) > _NEAR or heard_at > self._suspected_at + _SUSPECT_S:
            self._suspected, self._suspected_at = lag, heard_at
        elif heard_at >= self._suspected_at + _CONFIRM_S:
            self._lag, self._lag_at = lag, heard_at

    def _take_in(self, until: float) -> None:
        """Turn what has been heard by now into rows."""
        self._forget_before(until - _KEPT_S)
        while self._waiting and self._waiting[0].starts_at < until:
            piece = self._waiting.popleft()
            ends_at = self._run_at + len(self._run) / self._played_hz
            if not len(self._run) or abs(piece.starts_at - ends_at) > _RUN_GAP_S:
                self._run, self._run_at = np.zeros(0, np.float32), piece.starts_at
            self._run = np.concatenate((self._run, pcm_to_float(piece.pcm)))
            self._make_rows()

    def _make_rows(self) -> None:
        bank = self._played_bank
        slot = math.ceil(self._run_at * ROWS_PER_S - _SLACK_ROWS)
        skip = max(0, round((slot / ROWS_PER_S - self._run_at) * self._played_hz))
        count = bank.rows(len(self._run) - skip)
        if count <= 0:
            return
        count_kept = min(count, _ROWS_KEPT)
        skip += (count - count_kept) * bank.hop
        slots = np.arange(slot + count - count_kept, slot + count)
        levels = bank.levels(self._run[skip : skip + bank.samples(count_kept)])
        self._rows[slots % _ROWS_KEPT] = levels
        self._slots[slots % _ROWS_KEPT] = slots
        # The next row begins a hop after the last one.
        used = skip + count_kept * bank.hop
        self._run = self._run[used:]
        self._run_at += used / self._played_hz

    def _played_before(self, time: float) -> Floats:
        """Levels of the rows before a moment; silence where nothing was played."""
        end = int(time * ROWS_PER_S) - 1
        slots = np.arange(end - LIKENESS_ROWS - _LAGS, end)
        places = slots % _ROWS_KEPT
        there = self._slots[places] == slots
        return np.where(there[:, None], self._rows[places], np.float32(SILENCE))

    def _forget_before(self, time: float) -> None:
        while self._waiting and self._waiting[0].ends_at < time:
            self._waiting.popleft()


def _delayed(played: Floats, lag: int) -> Floats:
    end = len(played) - lag
    return played[end - LIKENESS_ROWS : end]
