"""What a person has said so far, in segments that fit a recogniser's window.

The last segment is open: audio is added to it. When it outgrows the window it is cut where it is
quietest, so that no word is lost or halved, and its text is kept. This module must not know how
audio becomes text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from duologue.codecs import pcm_to_float
from duologue.engines.payloads import AudioChunk
from duologue.engines.runners import mel
from duologue.engines.runners.speech_stream import SpeechStream

Floats = NDArray[np.float32]

_CUT_RANGE = 0.5
"""A segment is cut in its second half: short ones cost as much to decode, and know less context."""

_CUT_HOPS = 20
"""The quietest 200 ms; a cut in their middle is 100 ms from the words on both sides."""

SILENCE_BELOW_SPEECH_DB = 25.0
"""So far below its loud parts there are no words in an utterance, only breath and room."""

_LOUD_QUANTILE = 0.9


@dataclass(frozen=True, slots=True)
class SegmentPosition:
    """A position in the audio of a job, by the segment it falls into.

    Args:
        segment: Number of the segment, counted from 0.
        sample: Index in it, at 16 kHz.
    """

    segment: int
    sample: int


class Utterance:
    """Audio of one job, as text of closed segments and samples of the open one.

    Args:
        segment_samples: The open segment is to be cut when it is longer.
    """

    def __init__(self, segment_samples: int) -> None:
        self._segment_samples = segment_samples
        self._stream = SpeechStream()
        self._mel = mel.LogMelStream()
        self._texts: list[str] = []
        self._start = 0
        """Where the open segment begins in the 16 kHz run."""

    @property
    def must_be_cut(self) -> bool:
        """The open segment is too long to be decoded in one go."""
        return len(self._mel) > self._segment_samples

    def append(self, chunk: AudioChunk) -> None:
        """Add audio to the open segment.

        Raises:
            EngineError: It does not continue what came before, or cannot be read.
        """
        self._add(self._stream.append(chunk))

    def finish(self) -> None:
        """No more audio will come."""
        self._add(self._stream.finish())

    def position(self, end_sample: int) -> SegmentPosition:
        """Where ``end_sample`` of the chunks' clock is; what is not here yet counts as the end."""
        sample = self._stream.position(end_sample) - self._start
        return SegmentPosition(len(self._texts), min(max(0, sample), len(self._mel)))

    def fits(self, position: SegmentPosition) -> bool:
        """Tell whether the open segment up to ``position`` can be decoded in one go."""
        return position.sample <= self._segment_samples

    def clock_sample(self, segment_sample: int) -> int:
        """Where a sample of the open segment is on the chunks' clock."""
        return self._stream.clock_sample(self._start + segment_sample)

    def frames(self, position: SegmentPosition) -> Floats:
        """Log-mel frames of the open segment up to ``position``.

        Shapes:
            returns: [frames, 80] float32
        """
        return self._mel.frames(position.sample)

    def cut_position(self) -> SegmentPosition:
        """The quietest place in the part of the open segment where it may be cut."""
        power = _hop_power(self._mel.samples[: self._segment_samples])
        first = int(len(power) * _CUT_RANGE)
        runs = sliding_window_view(power[first:], _CUT_HOPS).sum(axis=1)
        # The last of equals: digital silence leaves a choice, and a longer segment knows more.
        quietest = first + len(runs) - 1 - int(np.argmin(runs[::-1]))
        return SegmentPosition(len(self._texts), (quietest + _CUT_HOPS // 2) * mel.HOP_SAMPLES)

    def close_segment(self, cut: SegmentPosition, text: str) -> None:
        """Keep the text of the open segment up to ``cut``; what follows is the open one now."""
        self._texts.append(text)
        self._mel.drop_before(cut.sample)
        self._start += cut.sample

    def text_with(self, open_text: str) -> str:
        """All closed segments' text, and then that of the open one."""
        return " ".join(text for text in (*self._texts, open_text) if text)

    def only_silence_between(self, start: SegmentPosition, end: SegmentPosition) -> bool:
        """Tell whether nothing was said from ``start`` to ``end``, judged by loudness alone."""
        if start.segment != end.segment or start.sample > end.sample:
            return False
        if start.sample == end.sample:
            return True
        added = self._mel.samples[start.sample : end.sample]
        before = self._mel.samples[: start.sample]
        if len(before) < mel.HOP_SAMPLES:
            return False
        loud = float(np.quantile(_hop_power(before), _LOUD_QUANTILE))
        limit = loud * 10.0 ** (-SILENCE_BELOW_SPEECH_DB / 10.0)
        return bool(_hop_power(added).max() <= limit)

    def _add(self, pcm: bytes) -> None:
        if pcm:
            self._mel.append(pcm_to_float(pcm))


def _hop_power(samples: Floats) -> Floats:
    """Mean power of each 10 ms; a rest at the end counts as one more.

    Shapes:
        returns: [hops] float32
    """
    rest = -len(samples) % mel.HOP_SAMPLES
    hops = np.pad(samples, (0, rest)).reshape(-1, mel.HOP_SAMPLES)
    return np.asarray(np.einsum("ij,ij->i", hops, hops) / np.float32(mel.HOP_SAMPLES))
