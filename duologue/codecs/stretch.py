"""Faster or slower speech at the same pitch, piece by piece.

libavfilter's ``atempo`` does it: short windows of the wave are laid over each other where they fit
best. This module must not know why somebody wants another pace.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from duologue.core.audio import SAMPLE_BYTES

_ONE_STEP = (0.5, 2.0)
"""One filter beyond these leaves out sound, or cannot; then two share the work."""


class TimeStretch:
    """Changes the pace of one stream of s16le mono PCM.

    What comes out is about one piece behind what goes in.

    Args:
        tempo: 2 is twice as fast; 0.25 to 4.
    """

    def __init__(self, rate_hz: int, tempo: float) -> None:
        import av

        self.tempo = tempo
        self._av: Any = av
        self._rate_hz = rate_hz
        self._taken = 0
        self._graph: Any = av.filter.Graph()
        last = self._source = self._graph.add_abuffer(
            sample_rate=rate_hz, format="s16", layout="mono", time_base=Fraction(1, rate_hz)
        )
        low, high = _ONE_STEP
        steps = [tempo] if low <= tempo <= high else [math.sqrt(tempo)] * 2
        for step in steps:
            following = self._graph.add("atempo", f"{step:.6f}")
            last.link_to(following)
            last = following
        last.link_to(self._graph.add("abuffersink"))
        self._graph.configure()

    def process(self, pcm: bytes) -> bytes:
        """Take whole samples; returns what can be made now."""
        if not pcm:
            return b""
        samples = len(pcm) // SAMPLE_BYTES
        frame = self._av.AudioFrame("s16", "mono", samples, align=1)
        frame.planes[0].update(pcm)
        frame.sample_rate = self._rate_hz
        frame.time_base = Fraction(1, self._rate_hz)
        frame.pts = self._taken
        self._taken += samples
        self._graph.push(frame)
        return self._ready()

    def flush(self) -> bytes:
        """Return the rest. Nothing may follow."""
        if not self._taken:
            return b""
        self._graph.push(None)
        return self._ready()

    def _ready(self) -> bytes:
        parts: list[bytes] = []
        while True:
            try:
                frame = self._graph.pull()
            except (self._av.BlockingIOError, self._av.EOFError):
                return b"".join(parts)
            parts.append(bytes(frame.planes[0])[: frame.samples * SAMPLE_BYTES])
