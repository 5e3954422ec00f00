"""Checkpoints, vocabularies and voices whose content is noise, in the true formats.

What such a model says is noise as well. They are for tests and demonstrations of the machinery.
"""

from __future__ import annotations

import io
import math
from pathlib import Path

import torch
from safetensors.torch import save_file
from sentencepiece import SentencePieceTrainer
from torch import Tensor

from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.layout import Layout
from duologue.engines.models.moshi_lm.token_grid import Frame, first_frame, row
from duologue.engines.models.moshi_lm.voice_prompt import RING

PUBLISHED = Layout("fused", 16)
"""As PersonaPlex is written."""


def save_random(
    path: Path,
    config: MoshiConfig,
    seed: int,
    layout: Layout = PUBLISHED,
    dtype: torch.dtype = torch.bfloat16,
) -> None:
    """Write a language model."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in layout.shapes(config).items():
        noise = torch.randn(shape, generator=generator)
        if name.endswith(".alpha"):
            noise = 1 + 0.1 * noise
        elif "emb" not in name:
            noise *= math.sqrt(1 / shape[1])
        tensors[name] = noise.to(dtype)
    save_file(tensors, path)


def save_random_voice(path: Path, config: MoshiConfig, frames: int, seed: int) -> None:
    """Write a voice of so many frames, at least two."""
    generator = torch.Generator().manual_seed(seed)

    def codes() -> tuple[int, ...]:
        shape = (config.codebooks,)
        return tuple(torch.randint(config.audio_card, shape, generator=generator).tolist())

    before = first_frame(config)
    cache = torch.full((1, config.streams, RING), -2)
    for position in range(frames):
        frame = Frame(config.text_padding, codes(), config.sine)
        cache[0, :, position % RING] = torch.tensor(row(config, frame, before))
        cache[0, :, (position + 1) % RING] = torch.tensor(row(config, before, frame))
        before = frame
    embeddings = torch.randn((frames - 1, 1, 1, config.dimension), generator=generator)
    stored: dict[str, Tensor] = {"embeddings": embeddings.bfloat16(), "cache": cache}
    torch.save(stored, path)


def train_vocabulary(path: Path, config: MoshiConfig, sentences: list[str]) -> None:
    """Write a SentencePiece vocabulary of as many tokens as the model has, made of sentences.

    Raises:
        RuntimeError: They do not have so many different pieces.
    """
    written = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=written,
        vocab_size=config.text_card,
        model_type="bpe",
        character_coverage=1.0,
        byte_fallback=True,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        pad_id=config.text_padding,
        minloglevel=2,
    )
    path.write_bytes(written.getvalue())
