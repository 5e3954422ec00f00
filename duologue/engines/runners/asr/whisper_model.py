"""Whisper in CTranslate2: features in, the most likely text out.

The encoder is given a shorter window than the 30 s it was trained with, since its cost is all in
the window, however little was said. This module must not know jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.payloads import ListenOptions
from duologue.engines.runners.asr.words import TimedWord, joined_words

_MODEL_FILES = ("model.bin", "config.json", "tokenizer.json")

_TOKENS_PER_S, _FILE_TOKENS_PER_S, _SPARE_TOKENS = 6, 10, 7
"""In a call people say at most about 5 tokens a second; more is a loop the model has fallen into.
What is asked for with options may be speech that was made faster."""

_MOST_TOKENS = 224
"""Half of the model's positions; the other half is for a prompt."""

_MOST_PROMPT_TOKENS = 200
"""The end of a client's prompt is nearer to what follows, and there is no room for more."""

_FRAMES_PER_S = 100
_ALIGNMENT_S = 0.02
UNSUPPORTED = "unsupported"

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What was most likely said.

    Args:
        log_prob: Mean of the tokens' natural logarithms.
        no_speech: How likely there was no speech at all.
        words: When each was said, where that was asked for.
    """

    text: str
    log_prob: float
    no_speech: float
    words: Sequence[TimedWord] = ()


class Recognise(Protocol):
    """A model that hears one window."""

    def __call__(
        self,
        features: Floats,
        *,
        beam_size: int,
        speech_s: float,
        options: ListenOptions | None = None,
    ) -> Hypothesis:
        """Return the text of ``features`` [1, 80, T], in which ``speech_s`` are not padding.

        Raises:
            EngineError: The model cannot do what the options ask for.
        """
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
    prompts = _Prompts(tokenizer, language, is_multilingual=whisper.is_multilingual)
    first_special = tokenizer.token_to_id("<|endoftext|>")
    usual = ListenOptions()
    prompts.start(usual)

    def recognise(
        features: Floats,
        *,
        beam_size: int,
        speech_s: float,
        options: ListenOptions | None = None,
    ) -> Hypothesis:
        asked = options or usual
        start = prompts.start(asked)
        prompt = [*prompts.context(asked), *start, prompts.without_times]
        encoded = whisper.encode(ctranslate2.StorageView.from_array(features))
        draws = asked.temperature > 0
        result = whisper.generate(
            encoded,
            [prompt],
            beam_size=1 if draws else beam_size,
            sampling_topk=0 if draws else 1,
            sampling_temperature=asked.temperature if draws else 1.0,
            max_length=_max_length(speech_s, len(prompt), for_file=options is not None),
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        tokens = [token for token in result.sequences_ids[0] if token < first_special]
        text = tokenizer.decode(tokens).strip()
        words: Sequence[TimedWord] = ()
        if asked.words and tokens:
            frames = min(int(speech_s * _FRAMES_PER_S), features.shape[2])
            aligned = whisper.align(encoded, start, [tokens], max(1, frames))[0]
            words = joined_words(
                tokens,
                tokenizer.decode,
                _begins(aligned.alignments, len(tokens), speech_s),
                aligned.text_token_probs,
            )
        return Hypothesis(text, result.scores[0], result.no_speech_prob, words)

    return recognise


def _max_length(speech_s: float, prompt_tokens: int, *, for_file: bool) -> int:
    """Return the limit in the library's measure: it gives half of it to the text.

    It must hold the prompt besides, or there is no answer at all.
    """
    tokens_per_s = _FILE_TOKENS_PER_S if for_file else _TOKENS_PER_S
    tokens = min(int(speech_s * tokens_per_s) + _SPARE_TOKENS, _MOST_TOKENS)
    return max(2 * tokens, tokens + prompt_tokens)


class _Prompts:
    """The tokens that come before the text.

    Raises:
        ConfigError: The tokenizer is none of this model.
    """

    def __init__(self, tokenizer: Any, language: str, *, is_multilingual: bool) -> None:
        self._tokenizer = tokenizer
        self._language = language
        self._is_multilingual = is_multilingual
        self.without_times = self._special("<|notimestamps|>")
        self._begin = self._special("<|startoftranscript|>")
        self._before = self._special("<|startofprev|>")

    def start(self, options: ListenOptions) -> list[int]:
        """Return what says which language comes in and which one goes out."""
        language = options.language or self._language
        if not self._is_multilingual:
            if options.translate:
                raise EngineError("this model cannot translate", code=UNSUPPORTED)
            if language != self._language:
                raise EngineError(
                    f"this model understands {self._language!r} alone", code=UNSUPPORTED
                )
            return [self._begin]
        spoken = self._tokenizer.token_to_id(f"<|{language}|>")
        if spoken is None and options.language:
            raise EngineError(f"this model does not know {language!r}", code=UNSUPPORTED)
        if spoken is None:
            raise ConfigError(f"the model does not know the language {language!r}")
        task = "<|translate|>" if options.translate else "<|transcribe|>"
        return [self._begin, spoken, self._special(task)]

    def context(self, options: ListenOptions) -> list[int]:
        """Return what a client says came before."""
        if not options.prompt.strip():
            return []
        encoded = self._tokenizer.encode(f" {options.prompt.strip()}", add_special_tokens=False)
        # Special tokens that somebody wrote into a prompt are no context.
        plain = [token for token in encoded.ids if token < self._begin and token != self._end]
        return [self._before, *plain[-_MOST_PROMPT_TOKENS:]]

    @property
    def _end(self) -> int:
        return self._special("<|endoftext|>")

    def _special(self, name: str) -> int:
        token = self._tokenizer.token_to_id(name)
        if token is None:
            raise ConfigError(f"the model's tokenizer lacks {name}")
        return int(token)


def _begins(alignments: Sequence[tuple[int, int]], count: int, speech_s: float) -> list[float]:
    """When each of ``count`` tokens begins, and at last when all is over, in seconds."""
    begins: list[float] = []
    for token, moment in alignments:
        while len(begins) <= min(token, count):
            begins.append(min(moment * _ALIGNMENT_S, speech_s))
    while len(begins) <= count:
        begins.append(speech_s)
    return begins
