"""Which words of an answer were heard, from the count of samples played.

The dialect carries no times of words. What there is: text and speech arrive interleaved, so text
that comes after n samples is spoken at about sample n; between two such marks it is taken to flow
evenly. Marks that would need impossible speech (all text first, or all audio first) are dropped.
It is an estimate for the eye; what is in the history, the server says.
"""

from __future__ import annotations

from dataclasses import dataclass

USUAL_CHARACTERS_PER_S = 15.0
"""Before an answer's own speed is known."""

_FASTEST_CHARACTERS_PER_S = 40.0
_LONGEST_CHARACTER_S = 0.5


@dataclass(frozen=True, slots=True)
class _Mark:
    characters: int
    samples: int


class Alignment:
    """Text and speech of one item as they arrive."""

    def __init__(self, rate_hz: int) -> None:
        self.text = ""
        self.samples = 0
        self._rate_hz = rate_hz
        self._marks: list[_Mark] = []
        self._complete = False

    def add_text(self, delta: str) -> None:
        """More text has come."""
        if not self._marks or self._marks[-1].samples != self.samples:
            self._marks.append(_Mark(len(self.text), self.samples))
        self.text += delta

    def add_audio(self, samples: int) -> None:
        """More speech has come."""
        self.samples += samples

    def complete(self) -> None:
        """All has come."""
        self._complete = True

    def heard_characters(self, played_samples: int) -> int:
        """Characters that were heard when so many samples were played, to the end of a word."""
        if self._complete and played_samples >= self.samples:
            return len(self.text)
        before = _Mark(0, 0)
        for mark in self._points():
            if mark.samples > played_samples:
                share = (played_samples - before.samples) / (mark.samples - before.samples)
                reached = before.characters + share * (mark.characters - before.characters)
                return self._whole_words(reached)
            before = mark
        return len(self.text)

    def _points(self) -> list[_Mark]:
        points = [_Mark(0, 0)]
        for mark in (*self._marks, self._end()):
            points.append(mark)
            while len(points) > 2 and (
                self._is_absurd(points[-2], points[-1]) or self._is_absurd(points[-3], points[-2])
            ):
                del points[-2]
        return points[1:]

    def _end(self) -> _Mark:
        characters = len(self.text)
        if self._complete:
            return _Mark(characters, self.samples)
        last = self._marks[-1] if self._marks else _Mark(0, 0)
        rest_s = (characters - last.characters) / USUAL_CHARACTERS_PER_S
        return _Mark(characters, max(self.samples, last.samples + int(rest_s * self._rate_hz)))

    def _is_absurd(self, start: _Mark, end: _Mark) -> bool:
        characters = end.characters - start.characters
        seconds = (end.samples - start.samples) / self._rate_hz
        too_fast = seconds <= characters / _FASTEST_CHARACTERS_PER_S
        return too_fast or seconds > _LONGEST_CHARACTER_S * max(1, characters)

    def _whole_words(self, reached: float) -> int:
        """A word counts as heard once its middle was."""
        position = min(int(reached), len(self.text))
        start = self.text.rfind(" ", 0, position) + 1
        end = self.text.find(" ", position)
        end = len(self.text) if end == -1 else end
        return end if reached >= (start + end) / 2 else max(0, start - 1)
