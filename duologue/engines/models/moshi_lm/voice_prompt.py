"""Voices of PersonaPlex: a recording as the model would read it, ready made.

The files are pickles, so they are read by a loader that makes nothing but tensors.

Source:
    ``LMGen.load_voice_prompt_embeddings`` in github.com/NVIDIA/personaplex at 3428dfd.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from duologue.core.errors import ConfigError
from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.prompt import VoiceEnd
from duologue.engines.models.moshi_lm.token_grid import Frame

RING = 4
"""Columns of the stored tokens: the longest delay and three."""


@dataclass(frozen=True, slots=True)
class VoicePrompt:
    """A voice of n frames.

    Shapes:
        embeddings: [n - 1, D], what the rows of all frames but the last add up to
    """

    embeddings: Tensor
    end: VoiceEnd


def load_voice(path: Path, config: MoshiConfig) -> VoicePrompt:
    """Read a voice, onto the processor.

    Raises:
        ConfigError: The file cannot be read, holds more than tensors, or is of another model.
    """
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise ConfigError(
            f"cannot read the voice {path}: {type(error).__name__}."
            " It must be a whole .pt file that holds nothing but tensors; fetch it again."
        ) from error
    embeddings, cache = _tensors(stored, path)
    wanted = (1, 1, config.dimension)
    if embeddings.dim() != 4 or embeddings.shape[1:] != wanted or not len(embeddings):
        raise _wrong(
            path, f"embeddings is {list(embeddings.shape)}, must be [n, 1, 1, {wanted[2]}]"
        )
    if cache.shape != (1, config.streams, RING) or cache.is_floating_point():
        raise _wrong(
            path,
            f"cache is {list(cache.shape)} {cache.dtype}, must be [1, {config.streams}, {RING}]"
            " of integers",
        )
    frames = len(embeddings) + 1
    row = cache[0, :, (frames - 1) % RING].tolist()
    late = cache[0, :, frames % RING].tolist()
    end = VoiceEnd(tuple(row), _frame(config, row, late))
    _check_tokens(path, config, [end.row, _flat(end.frame)])
    return VoicePrompt(embeddings[:, 0, 0], end)


def _tensors(stored: object, path: Path) -> tuple[Tensor, Tensor]:
    if isinstance(stored, dict):
        embeddings, cache = stored.get("embeddings"), stored.get("cache")
        if isinstance(embeddings, Tensor) and isinstance(cache, Tensor):
            return embeddings, cache
    raise _wrong(path, "it must hold the tensors 'embeddings' and 'cache'")


def _frame(config: MoshiConfig, row: Sequence[int], late: Sequence[int]) -> Frame:
    """Gather the last frame: its first codes stand in its own column, the others in the next."""
    count = config.codebooks
    delays = (0, *config.delays, *config.delays)
    whole = [late[i] if delay else row[i] for i, delay in enumerate(delays)]
    return Frame(whole[0], tuple(whole[1 : 1 + count]), tuple(whole[1 + count :]))


def _flat(frame: Frame) -> tuple[int, ...]:
    return (frame.text, *frame.said, *frame.heard)


def _check_tokens(path: Path, config: MoshiConfig, rows: Sequence[Sequence[int]]) -> None:
    for text, *codes in rows:
        if not 0 <= text <= config.text_initial:
            raise _wrong(path, f"text token {text} is not within 0 to {config.text_initial}")
        for code in codes:
            if not 0 <= code <= config.audio_initial:
                raise _wrong(path, f"code {code} is not within 0 to {config.audio_initial}")


def _wrong(path: Path, what: str) -> ConfigError:
    return ConfigError(
        f"{path} is no voice of this model: {what}. Use a voice from the model's own archive.",
        details={"path": str(path)},
    )
