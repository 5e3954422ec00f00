"""One text, spoken while it is still coming in: clauses go to a voice, speech and marks come out.

Text is cut and made speakable as in a call. Only a few clauses are with the voice at a time, so
that a text is worked on as far as somebody listens. This module must not know who sends the text,
nor where the speech goes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from duologue.codecs.resample import StreamResampler
from duologue.codecs.stretch import TimeStretch
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import EngineError
from duologue.duplex_plugins.spoken.clauses import Clause, ClauseCutter, ClauseLimits
from duologue.duplex_plugins.spoken.normaliser import speakable
from duologue.engines.payloads import AudioChunk, SpeakText, SpeechMark
from duologue.gateway.route_requests import Outputs
from duologue.gateway.speech.voices import Manner

SPEECH_RATE_HZ = 24_000
"""What comes out, whatever a voice makes."""

CREDIT_MS = 4000
"""Speech that may wait here to be taken."""

_CLAUSES_AHEAD = 3
_SLICE_CHARS = 1000
"""Text is cut in slices, since searching a long one takes the loop too long."""


@dataclass(frozen=True, slots=True)
class Mark:
    """All text before ``text_end`` has been said at ``sample``.

    Args:
        ends_clause: Exact, and a pause may follow; else it is a word.
    """

    text_end: int
    sample: int
    ends_clause: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """The next run of speech, s16le mono; either part may be empty."""

    pcm: bytes
    marks: tuple[Mark, ...] = ()


class Speaking:
    """Says one text.

    Args:
        outputs: The voice's request, open for input.

    Units:
        Offsets count characters of all text that was fed; samples are at ``SPEECH_RATE_HZ``.

    Concurrency:
        One task takes ``pieces``; text may come from others of the same loop.
    """

    def __init__(self, outputs: Outputs, manner: Manner) -> None:
        self._outputs = outputs
        self._manner = manner
        self._cutter = ClauseCutter(ClauseLimits())
        self._unread: deque[str] = deque()
        self._clauses: deque[Clause] = deque()
        self._under_way: deque[int] = deque()
        self._skipped = 0
        """Blank characters before the first word; the cutter does not count them."""
        self._fed = 0
        self._must_cut = False
        self._all_fed = self._all_given = False
        self._resampler: StreamResampler | None = None
        self._stretch: TimeStretch | None = None
        self._samples = 0

    @property
    def samples(self) -> int:
        """How much speech came out."""
        return self._samples

    def feed(self, text: str) -> None:
        """Add text."""
        if self._fed == self._skipped:
            blank = len(text) - len(text.lstrip())
            self._skipped += blank
            self._fed += blank
            text = text[blank:]
        self._fed += len(text)
        self._unread.extend(
            text[at : at + _SLICE_CHARS] for at in range(0, len(text), _SLICE_CHARS)
        )
        self._hand_over()

    def flush(self) -> None:
        """Say what has come, though its clause may not be complete."""
        self._must_cut = True
        self._hand_over()

    def finish(self) -> None:
        """No further text comes."""
        self._all_fed = self._must_cut = True
        self._hand_over()

    async def pieces(self) -> AsyncIterator[Piece]:
        """Yield the speech, as soon as it is made.

        Raises:
            EngineError: The voice failed, or did not say everything.
        """
        async for payload in self._outputs:
            match payload:
                case AudioChunk(pcm=pcm, rate_hz=rate_hz):
                    pcm = await self._converted(pcm, rate_hz)
                    self._samples += len(pcm) // SAMPLE_BYTES
                    if pcm:
                        yield Piece(pcm)
                case SpeechMark() as mark:
                    yield Piece(b"", (self._marked(mark),))
                case other:
                    raise EngineError(f"a voice gave {type(other).__name__}")
        if self._under_way or not self._all_given:
            raise EngineError("the voice broke off")
        if tail := self._tail():
            self._samples += len(tail) // SAMPLE_BYTES
            yield Piece(tail)

    def _hand_over(self) -> None:
        """Give the voice as many clauses as it may have."""
        while len(self._under_way) < _CLAUSES_AHEAD and not self._all_given:
            if self._clauses:
                self._say(self._clauses.popleft())
            elif self._unread:
                self._clauses.extend(self._cutter.feed(self._unread.popleft()))
            elif self._must_cut:
                self._must_cut = False
                self._clauses.extend(self._cutter.finish())
            elif self._all_fed:
                self._all_given = True
                self._outputs.finish()
            else:
                return

    def _say(self, clause: Clause) -> None:
        start = clause.end - len(clause.text)
        spoken = speakable(clause.text)
        self._under_way.append(clause.end)
        self._outputs.append(
            SpeakText(
                spoken.text,
                clause.end,
                self._manner.voice,
                self._manner.speed,
                tuple((end, start + written) for end, written in spoken.word_ends),
                self._manner.instructions,
            )
        )

    def _marked(self, mark: SpeechMark) -> Mark:
        ends_clause = bool(self._under_way) and mark.text_end >= self._under_way[0]
        while self._under_way and mark.text_end >= self._under_way[0]:
            self._under_way.popleft()
        self._hand_over()
        sample = mark.sample * SPEECH_RATE_HZ / (self._own_rate_hz * self._manner.tempo)
        return Mark(mark.text_end + self._skipped, round(sample), ends_clause and mark.exact)

    async def _converted(self, pcm: bytes, rate_hz: int) -> bytes:
        if self._resampler is None:
            self._own_rate_hz = rate_hz
            self._resampler = StreamResampler(rate_hz, SPEECH_RATE_HZ)
            if abs(self._manner.tempo - 1) > 0.005:
                # Its library is loaded at the first time, which takes a while.
                self._stretch = await asyncio.to_thread(
                    TimeStretch, SPEECH_RATE_HZ, self._manner.tempo
                )
        if rate_hz != self._own_rate_hz:
            raise EngineError(f"a voice went from {self._own_rate_hz} to {rate_hz} Hz")
        pcm = self._resampler.process(pcm)
        return pcm if self._stretch is None else self._stretch.process(pcm)

    _own_rate_hz = SPEECH_RATE_HZ

    def _tail(self) -> bytes:
        if self._resampler is None:
            return b""
        tail = self._resampler.flush()
        return (
            tail if self._stretch is None else self._stretch.process(tail) + self._stretch.flush()
        )
