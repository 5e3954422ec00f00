"""How long a client waits for speech: for its first packet, and for what can be heard.

This module must not know where the speech goes.
"""

from __future__ import annotations

import numpy as np

from duologue.core.clock import Clock
from duologue.gateway.speech.speaking import SPEECH_RATE_HZ
from duologue.telemetry import Metrics

AUDIBLE = 328
"""A hundredth of full scale: 40 dB below it. What is softer passes for silence."""


class FirstSound:
    """One answer: made when it is asked for, told of all speech as it is handed over."""

    def __init__(self, metrics: Metrics, clock: Clock, pipeline: str) -> None:
        self._packet = metrics.speech_first_packet[pipeline]
        self._audible = metrics.speech_first_audible[pipeline]
        self._clock = clock
        self._asked = clock.now()
        self._first: float | None = None
        self._silent_samples = 0
        self._heard = False

    def note(self, pcm: bytes) -> None:
        """Take s16le mono PCM that goes to the client now.

        A client that plays at once hears a sample when it has come, and not before the silence
        that lies before it is over.
        """
        if self._heard or not pcm:
            return
        now = self._clock.now()
        if self._first is None:
            self._first = now
            self._packet.observe(now - self._asked)
        loud = np.abs(np.frombuffer(pcm, "<i2").astype(np.int32)) >= AUDIBLE
        place = int(loud.argmax())
        if not loud[place]:
            self._silent_samples += len(loud)
            return
        self._heard = True
        played = self._first + (self._silent_samples + place) / SPEECH_RATE_HZ
        self._audible.observe(max(now, played) - self._asked)
