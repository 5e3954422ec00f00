"""Pacing: when speech that waits may go out, and in what pieces.

It goes out at most so far ahead of playback, and in pieces that are worth a message. This module
must not know responses, events or who speaks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from duologue.core.audio import ms_to_samples
from duologue.duplex_plugins.contract import Capabilities
from duologue.sessions.settings import SessionSettings
from duologue.sessions.speaking.output_buffer import OutputBuffer, Speech
from duologue.sessions.speaking.playback import PlaybackLedger

ANY_MODEL = Capabilities()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How far ahead of playback speech is sent, and in what pieces.

    Units:
        Milliseconds.

    Args:
        lead_ms: Speech that may be out there unheard; ``None``: send all at once.
        delta_ms: The longest piece.
        merge_ms: Shorter pieces wait for more, unless the person is about to run dry.
        dry_ms: Unheard speech below which nothing waits.
    """

    lead_ms: int | None = 3000
    delta_ms: int = 200
    merge_ms: int = 100
    dry_ms: int = 250


def pace_of(settings: SessionSettings, capabilities: Capabilities = ANY_MODEL) -> Pace:
    """Return the pace of speech: as set, but no faster than the model allows."""
    lead_ms = settings.send_lead_ms or None
    if capabilities.lead_ms is None:
        return Pace(lead_ms=lead_ms, delta_ms=settings.delta_ms, merge_ms=settings.merge_ms)
    lead_ms = min(lead_ms or capabilities.lead_ms, capabilities.lead_ms)
    delta_ms = min(settings.delta_ms, capabilities.frame_ms or settings.delta_ms, lead_ms)
    # A piece goes out when it fits below the lead, and at once.
    return Pace(lead_ms=lead_ms, delta_ms=delta_ms, merge_ms=0, dry_ms=lead_ms - delta_ms)


class Pacing:
    """Takes the speech of one session out of its buffer as playback goes on.

    Args:
        rate_hz: Rate of the speech.
    """

    __slots__ = (
        "_buffer",
        "_delta_samples",
        "_dry_s",
        "_lead_s",
        "_merge_samples",
        "_playback",
        "_rate_hz",
        "held_until",
        "merging",
        "paced_until",
    )

    def __init__(
        self, pace: Pace, buffer: OutputBuffer, playback: PlaybackLedger, rate_hz: int
    ) -> None:
        self.paced_until: float | None = None
        """When waiting speech may go out; ``None`` where none waits for playback."""

        self.held_until = -math.inf
        """Before that, no speech goes out."""

        self.merging = False
        """What waits for playback is a piece that is too short, not one that is too early."""

        self._buffer = buffer
        self._playback = playback
        self._rate_hz = rate_hz
        self._lead_s = None if pace.lead_ms is None else pace.lead_ms / 1000
        self._delta_samples = ms_to_samples(pace.delta_ms, rate_hz)
        self._merge_samples = ms_to_samples(pace.merge_ms, rate_hz)
        self._dry_s = pace.dry_ms / 1000

    def take(self, now: float) -> Speech | None:
        """Remove the next piece from the buffer, if it may go out; else say until when it waits."""
        if now < self.held_until:
            self.paced_until, self.merging = self.held_until, False
            return None
        buffer = self._buffer
        if self._lead_s is None and not self._merge_samples:
            return buffer.take_speech(self._delta_samples, 0)
        lead_s = self._playback.lead_s(now)
        allowed = self._delta_samples
        if self._lead_s is not None:
            headroom = round((self._lead_s - lead_s) * self._rate_hz)
            # Whole pieces only: a trickle of tiny ones would cost a message each.
            if headroom < allowed and lead_s > self._dry_s:
                if buffer.has_speech():
                    self.paced_until = now + (allowed - headroom) / self._rate_hz
                    self.merging = False
                return None
        minimum = 0 if lead_s <= self._dry_s else self._merge_samples
        speech = buffer.take_speech(allowed, minimum)
        if speech is None and buffer.has_speech():
            # A short piece waits to be merged, at most until the person would run dry.
            self.paced_until = now + lead_s - self._dry_s
            self.merging = True
        return speech

    def let_pass(self, now: float) -> None:
        """Let time pass: speech that waited for playback may go out when its time has come."""
        if self.paced_until is not None and now >= self.paced_until:
            self.paced_until = None

    def has_grown(self, response_id: str) -> None:
        """More speech of a response waits: a piece that was too short may be long enough."""
        if self.merging and self._buffer.speech_samples(response_id) >= self._merge_samples:
            self.paced_until = None

    def has_ended(self) -> None:
        """Nothing will be merged onto what waits, so a short piece need not wait for it."""
        if self.merging:
            self.paced_until = None

    def begin_anew(self) -> None:
        """What waited is gone, or may go out: find out afresh what the rest waits for."""
        self.paced_until = None

    def hold(self, until: float) -> None:
        """Let no speech out for a while."""
        self.held_until = until

    def release(self) -> None:
        """Hold no speech back any more."""
        self.held_until = -math.inf
        self.paced_until = None
