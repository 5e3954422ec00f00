"""Windows of heard text as segments: about a sentence each, as subtitles want them.

This module must not know recognisers or forms of text.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from duologue.engines.payloads import HeardWord
from duologue.gateway.transcription.hearing import HeardWindow
from duologue.gateway.transcription.windows import WINDOW_RATE_HZ

_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")  # noqa: RUF001
_LONGEST_S = 7.0
_LONGEST_CHARS = 84
"""Two lines of a subtitle."""
_PAUSE_S = 1.0


class SpokenWord(msgspec.Struct, frozen=True):
    """One word of a detailed transcription, in seconds."""

    word: str
    start: float
    end: float


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """One segment of a detailed transcription, in seconds.

    Args:
        seek: Where its window begins, in hundredths of a second.
    """

    id: int
    seek: int
    start: float
    end: float
    text: str
    tokens: Sequence[int]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float


def spoken_words(windows: Iterable[HeardWindow]) -> list[SpokenWord]:
    """Return all words."""
    return [
        SpokenWord(word.text.strip(), _seconds(word.start_sample), _seconds(word.end_sample))
        for window in windows
        for word in window.words
    ]


def segments_of(windows: Iterable[HeardWindow], temperature: float) -> list[Segment]:
    """Return all segments; a window whose words are not known is one."""
    segments: list[Segment] = []
    for window in windows:
        for words in _sentences(window.words) if window.words else [()]:
            text = "".join(word.text for word in words) if words else f" {window.text}"
            start = words[0].start_sample if words else window.start_sample
            end = words[-1].end_sample if words else window.end_sample
            segments.append(
                Segment(
                    id=len(segments),
                    seek=round(_seconds(window.start_sample) * 100),
                    start=_seconds(start),
                    end=_seconds(end),
                    text=text,
                    tokens=[token for word in words for token in word.tokens],
                    temperature=temperature,
                    avg_logprob=round(window.details.log_prob, 4),
                    compression_ratio=_compression(text),
                    no_speech_prob=round(window.details.no_speech, 4),
                )
            )
    return segments


def _sentences(words: Sequence[HeardWord]) -> Iterator[Sequence[HeardWord]]:
    first = 0
    chars = 0
    for index, word in enumerate(words):
        chars += len(word.text)
        following = words[index + 1] if index + 1 < len(words) else None
        if following is None or (
            word.text.endswith(_SENTENCE_ENDS)
            or _seconds(following.start_sample - word.end_sample) > _PAUSE_S
            or _seconds(following.end_sample - words[first].start_sample) > _LONGEST_S
            or chars + len(following.text) > _LONGEST_CHARS
        ):
            yield words[first : index + 1]
            first = index + 1
            chars = 0


def _seconds(samples: int) -> float:
    return round(samples / WINDOW_RATE_HZ, 3)


def _compression(text: str) -> float:
    """How well a text can be compressed: what goes round in circles can be too well."""
    raw = text.encode()
    return round(len(raw) / len(zlib.compress(raw)), 4)
