"""The hibari model (package ``hibari-tts``): a clause in, its sound and the ends of its words out.

The silence that the model puts around everything is cut off: it would be a third of a second before
the first word of every answer. This module must not know jobs or marks.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duologue.core.audio import ms_to_samples
from duologue.core.errors import ConfigError, EngineError
from duologue.engines.runners.tts.onnx_outputs import with_output

RATE_HZ = 24_000

_DURATIONS = "/Cast_32_output_0"
"""Name of the value inside the model that says how long each phoneme is."""
_SAMPLES_PER_UNIT = 600
_AUDIBLE = 0.003
"""Of full scale. The model's silence is a hundred times quieter."""
_BEFORE_SPEECH_MS = 12
_AFTER_SPEECH_MS = 35
_FADE_IN_MS = 4
_FADE_OUT_MS = 15
_WORD = re.compile(r"\S+")

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Utterance:
    """A spoken clause.

    Args:
        samples: Sound from the first to the last audible one, with faded ends.
        word_ends: For each word of the text, the offset just past it and the sample at which it
            ends. Empty where words and phonemes do not correspond one to one.
    """

    samples: Samples
    word_ends: tuple[tuple[int, int], ...]


class HibariVoice:
    """One loaded voice.

    Raises:
        ConfigError: There is no such voice on this machine. None is ever downloaded.
        EngineError: The installed version of the library is not the one that we know.
    """

    def __init__(self, voice: str, threads: int) -> None:
        from hibari import dsp
        from hibari.tts import Hibari
        from hibari.voices import VOICES, voice_path

        if voice not in VOICES:
            raise ConfigError(f"no voice is called {voice!r}; there are {', '.join(VOICES)}")
        try:
            path = Path(voice_path(voice, download_missing=False))
        except FileNotFoundError as exc:
            raise ConfigError(
                f"the voice {voice!r} is not on this machine: {exc} is missing"
            ) from exc
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(with_output(path.read_bytes(), _DURATIONS))
            file.flush()
            self._tts: Any = Hibari(voice=voice, model=file.name, threads=threads)
        self._synthesise: Any = dsp.synth

    def speak(self, text: str, speed: float, pause_samples: int) -> Utterance:
        """Say one clause.

        Args:
            speed: 1 is the voice's own; half to double.
            pause_samples: Silence between sentences, should there be several.
        """
        sounds: list[Samples] = []
        ends: list[int] = []
        start = 0
        for phonemes in self._tts.phonemize(text):
            if sounds:
                sounds.append(np.zeros(pause_samples, np.float32))
                start += pause_samples
            sound, word_ends = self._speak_phonemes(phonemes, speed)
            sounds.append(sound)
            ends.extend(start + end for end in word_ends)
            start += len(sound)
        words = [match.end() for match in _WORD.finditer(text)]
        samples = np.concatenate(sounds) if sounds else np.zeros(0, np.float32)
        paired = zip(words, ends, strict=True) if len(words) == len(ends) else ()
        return Utterance(samples, tuple(paired))

    def _speak_phonemes(self, phonemes: str, speed: float) -> tuple[Samples, list[int]]:
        vocabulary = self._tts.vocab
        ids = [0, *(vocabulary[char] for char in phonemes if char in vocabulary), 0]
        *spectrum, durations = self._tts.sess.run(
            None,
            {"ids": np.asarray([ids], np.int64), "speed": np.asarray([speed], np.float32)},
        )
        # The noise in it is the same each time, so the same text gives the same sound.
        generator = np.random.default_rng(0)
        sound: Samples = self._synthesise(*(part[0] for part in spectrum), generator)
        unit_ends = np.cumsum(durations.ravel())
        if unit_ends.size != len(ids) or unit_ends[-1] * _SAMPLES_PER_UNIT != len(sound):
            raise EngineError(
                f"{len(sound)} samples came for {int(unit_ends[-1])} units of {_SAMPLES_PER_UNIT}: "
                "the installed hibari-tts is not the version that this runner knows"
            )
        audible = np.flatnonzero(np.abs(sound) > _AUDIBLE)
        if not audible.size:
            return np.zeros(0, np.float32), []
        begin = max(0, int(audible[0]) - ms_to_samples(_BEFORE_SPEECH_MS, RATE_HZ))
        finish = min(len(sound), int(audible[-1]) + ms_to_samples(_AFTER_SPEECH_MS, RATE_HZ))
        ends: list[int] = []
        index = 0
        for char in f"{phonemes} ":
            if char == " ":
                boundary = int(unit_ends[index]) * _SAMPLES_PER_UNIT
                # The model counts a pause as part of the sound before it.
                last = int(np.searchsorted(audible, boundary)) - 1
                ends.append((int(audible[last]) if last >= 0 else boundary) - begin)
            index += char in vocabulary
        length = finish - begin
        return _faded(sound[begin:finish]), [min(max(end, 0), length) for end in ends]


def _faded(sound: Samples) -> Samples:
    faded = sound.copy()
    rise = min(len(faded), ms_to_samples(_FADE_IN_MS, RATE_HZ))
    fall = min(len(faded), ms_to_samples(_FADE_OUT_MS, RATE_HZ))
    faded[:rise] *= np.linspace(0, 1, rise, dtype=np.float32)
    faded[len(faded) - fall :] *= np.linspace(1, 0, fall, dtype=np.float32)
    return faded
