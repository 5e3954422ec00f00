"""How a stream begins: personas and voices, made into positions to be read."""

from __future__ import annotations

import secrets
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.prompt import moshi_prompt, personaplex_prompt, wrapped
from duologue.engines.models.moshi_lm.sampling import taste_of
from duologue.engines.models.moshi_lm.tokenizer import TextTokenizer
from duologue.engines.models.moshi_lm.voice_prompt import VoicePrompt, load_voice
from duologue.engines.payloads import NOT_SAID, LockstepStart
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.token_log import TokenLog

UNKNOWN_VOICE = "invalid_request"
_VOICES = 32
"""How many are kept in memory: 16 ship with the model."""


class Beginnings:
    """What streams of one model may begin with.

    Args:
        voices: Folder of voices; None: the model cannot be told who it is to be.
        default_voice: For who names none.
    """

    def __init__(
        self,
        config: MoshiConfig,
        tokenizer: TextTokenizer,
        voices: Path | None,
        default_voice: str,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._folder = voices
        self._default_voice = default_voice
        self._device = device
        self._dtype = dtype
        self._voice = lru_cache(maxsize=_VOICES)(self._load)

    def opening(self, start: LockstepStart) -> Opening:
        """Make a beginning of what was asked for.

        Raises:
            EngineError: There is no such voice, or the persona is longer than the window.
        """
        seed = start.seed or secrets.randbits(63)
        taste = taste_of(start.temperature, start.top_k)
        if self._folder is None:
            return Opening(moshi_prompt(self._config), seed=seed, taste=taste)
        name = start.voice or self._default_voice
        voice = self._voice(name) if name else None
        text = self._tokenizer.encode(wrapped(start.instructions)) if start.instructions else []
        prompt = personaplex_prompt(self._config, text, voice.end if voice else None)
        opening = Opening(
            prompt,
            voice=None if voice is None else voice.embeddings,
            taste=taste,
            seed=seed,
            name=f"{name}\n{start.instructions}",
            pinned=start.pins_persona,
        )
        most = self._config.window // 2 if start.pins_persona else self._config.window - 1
        if opening.positions > most:
            raise EngineError(
                f"the voice and the instructions take {opening.positions} frames of the model's"
                f" memory, of which they may take {most}: shorten the instructions",
            )
        return opening

    def log(self, start: LockstepStart, opening: Opening) -> TokenLog | None:
        """Read what a stream has gone through elsewhere.

        Raises:
            EngineError: It is not of this model.
        """
        if not start.log:
            return None
        config = self._config
        numbers = np.frombuffer(start.log, "<u2").astype(np.int32)
        if len(numbers) % config.streams:
            raise EngineError(f"a log of {len(numbers)} tokens is no whole number of frames")
        log = TokenLog(config, opening.positions - 1, opening.prompt.last)
        silent = np.array((config.text_padding, *config.silence), np.int32)
        for frame in numbers.reshape(-1, config.streams):
            said = frame[: len(silent)]
            # Whatever the model said there, it was taken back.
            frame[: len(silent)] = np.where((said == NOT_SAID).any(), silent, said)
            log.append(frame)
        return log

    def _load(self, name: str) -> VoicePrompt:
        assert self._folder is not None
        known = sorted(path.stem for path in self._folder.glob("*.pt"))
        if name not in known:
            raise EngineError(f"there is no voice {name!r}; there are {', '.join(known) or 'none'}")
        try:
            voice = load_voice(self._folder / f"{name}.pt", self._config)
        except ConfigError as error:
            raise EngineError(error.message) from error
        embeddings = voice.embeddings.to(self._device, self._dtype)
        return VoicePrompt(embeddings, voice.end)
