"""One item of the conversation, and what the wire does not show of it: what was heard.

This module must not know the order of items, or how heard positions come about.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from duologue.engines.payloads import SpeechMark
from duologue.protocol.items import Item

MAX_CHARS_PER_S = 25
"""Nobody speaks faster, so text that is ahead of its audio is told from text that was spoken."""


@dataclass(slots=True)
class Spoken:
    """The assistant's speech in an item: its text so far, and how text and samples correspond.

    Args:
        complete: The last sample is the end of the text; else text may be ahead of its audio.
        cut_sample: Where the person stopped hearing it; ``None``: nowhere.
    """

    response_id: str
    rate_hz: int
    text: str = ""
    marks: list[SpeechMark] = field(default_factory=list)
    samples: int = 0
    complete: bool = False
    cut_sample: int | None = None

    def cut_at(self, sample: int | None) -> None:
        """Note where the person stopped hearing it; ``None``: nowhere, it is all theirs.

        At first an estimate, made where the answer was cut off; then what the client says.
        """
        self.cut_sample = sample

    def heard_text(self) -> str:
        """Return the text before the cut; all of it where there is none."""
        return self.text if self.cut_sample is None else self.text_until(self.cut_sample)

    def text_until(self, sample: int) -> str:
        """Return the words that had been spoken to their end at ``sample``.

        Between two marks the position is interpolated and rounded down to a whole word, and so
        it is after the last one, as far as anybody can have spoken by then.
        """
        start_text, start_sample = 0, 0
        for mark in self.marks:
            if mark.sample > sample:
                share = (sample - start_sample) / (mark.sample - start_sample)
                return self._whole_words(start_text, mark.text_end, share)
            start_text, start_sample = mark.text_end, mark.sample
        if self.complete and sample >= self.samples:
            return self.text
        rest = self.samples - start_sample
        if sample <= start_sample or rest <= 0:
            return self.text[:start_text].rstrip()
        end = len(self.text)
        if not self.complete:
            end = min(end, start_text + rest * MAX_CHARS_PER_S // self.rate_hz)
        return self._whole_words(start_text, end, min(1.0, (sample - start_sample) / rest))

    def _whole_words(self, start: int, end: int, share: float) -> str:
        reached = start + int((end - start) * share)
        if reached >= len(self.text) or self.text[reached].isspace():
            return self.text[:reached].rstrip()
        last_space = self.text.rfind(" ", start, reached)
        return self.text[: last_space if last_space > start else start].rstrip()


@dataclass(slots=True, eq=False)
class Entry:
    """One item of the conversation, and what the wire does not show of it.

    Args:
        lost: Why nobody knows what the person said in it.
        silence: Nobody spoke in it: the idle time-out made it.
        size_bytes: What the client put into it, as it was added.
    """

    item: Item
    spoken: Spoken | None = None
    interrupted: bool = False
    lost: str = ""
    silence: bool = False
    size_bytes: int = 0
