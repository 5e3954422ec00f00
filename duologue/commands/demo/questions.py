"""The bundled questions: their text, their audio, and the words that an answer should hold.

``duologue/assets/questions/README.md`` says where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import msgspec
import numpy as np
import yaml

from duologue.clients.playback import RATE_HZ
from duologue.commands.demo.words import mentions
from duologue.commands.talk.sound_files import read_speech
from duologue.core.errors import ConfigError

FOLDER = Path(str(files("duologue"))) / "assets" / "questions"

ORDER = ("france", "dinner", "week", "romeo", "sum", "opposite", "bees", "planet")
"""The second one's answer is long, so that it can be interrupted; the others' are facts."""

SPEECH = 0.02
"""Speech reaches from the first to the last sample above this part of the peak (-34 dB)."""


class _Entry(msgspec.Struct):
    id: str
    text: str
    keywords: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Units:
        ``pcm`` is s16le mono at 24 kHz; speech lasts from ``speech_from_s`` to ``speech_until_s``
        in it.

    Args:
        keywords: A right answer holds one word of each group.
    """

    id: str
    text: str
    keywords: tuple[tuple[str, ...], ...]
    pcm: bytes
    speech_from_s: float
    speech_until_s: float

    def missing(self, answer: str) -> list[str]:
        """Return the groups of keywords of which an answer holds none."""
        return [" or ".join(group) for group in self.keywords if not mentions(answer, group)]


def load_questions(count: int) -> Sequence[Question]:
    """Return the first questions of the demonstration.

    Raises:
        ConfigError: There are not so many.
    """
    if count > len(ORDER):
        raise ConfigError(f"{count} questions were asked for; there are {len(ORDER)}")
    listed = yaml.safe_load((FOLDER / "questions.yaml").read_text(encoding="utf-8"))
    entries = {entry.id: entry for entry in msgspec.convert(listed, list[_Entry])}
    return [_question(entries[name]) for name in ORDER[:count]]


def _question(entry: _Entry) -> Question:
    pcm = read_speech(FOLDER / f"{entry.id}.flac")
    speech_from, speech_until = speech_span(pcm)
    return Question(entry.id, entry.text, entry.keywords, pcm, speech_from, speech_until)


def speech_span(pcm: bytes) -> tuple[float, float]:
    """Return when speech begins and ends in audio, in seconds."""
    level = np.abs(np.frombuffer(pcm, "<i2").astype(np.int32))
    loud = np.flatnonzero(level > SPEECH * level.max()) if len(level) else level
    if not len(loud):
        return 0.0, 0.0
    return float(loud[0]) / RATE_HZ, float(loud[-1] + 1) / RATE_HZ
