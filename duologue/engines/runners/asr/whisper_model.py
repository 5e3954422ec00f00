"""Whisper in CTranslate2: features in, the most likely text out.

The encoder is given a shorter window than the 30 s it was trained with, since its cost is all in
the window, however little was said. This module must not know jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from duologue.core.errors import ConfigError

_MODEL_FILES = ("model.bin", "config.json", "tokenizer.json")

_TOKENS_PER_S, _SPARE_TOKENS = 8, 14
"""People say at most about 5 tokens a second; more is a loop the model has fallen into."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What was most likely said.

    Args:
        log_prob: Mean of the tokens' natural logarithms.
        no_speech: How likely there was no speech at all.
    """

    text: str
    log_prob: float
    no_speech: float


class Recognise(Protocol):
    """A model that hears one window."""

    def __call__(self, features: Floats, *, beam_size: int, speech_s: float) -> Hypothesis:
        """Return the text of ``features`` [1, 80, T], in which ``speech_s`` are not padding."""
        ...


def load_whisper(model: str, *, language: str, threads: int, compute_type: str) -> Recognise:
    """Load a model folder.

    Raises:
        ConfigError: A file is missing from it.
    """
    import ctranslate2
    from tokenizers import Tokenizer

    folder = Path(model)
    if missing := [name for name in _MODEL_FILES if not (folder / name).is_file()]:
        raise ConfigError(
            f"{model} lacks {', '.join(missing)}; `duologue models pull` fetches our model"
        )
    whisper = ctranslate2.models.Whisper(
        model, device="cpu", compute_type=compute_type, intra_threads=threads, inter_threads=1
    )
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    spoken = (f"<|{language}|>", "<|transcribe|>") if whisper.is_multilingual else ()
    names = ("<|startoftranscript|>", *spoken, "<|notimestamps|>")
    prompt = [tokenizer.token_to_id(name) for name in names]
    if None in prompt:
        raise ConfigError(f"{model} does not know the language {language!r}")
    first_special = tokenizer.token_to_id("<|endoftext|>")

    def recognise(features: Floats, *, beam_size: int, speech_s: float) -> Hypothesis:
        result = whisper.generate(
            ctranslate2.StorageView.from_array(features),
            [prompt],
            beam_size=beam_size,
            max_length=len(prompt) + int(speech_s * _TOKENS_PER_S) + _SPARE_TOKENS,
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        tokens = [token for token in result.sequences_ids[0] if token < first_special]
        text = tokenizer.decode(tokens).strip()
        return Hypothesis(text, result.scores[0], result.no_speech_prob)

    return recognise
