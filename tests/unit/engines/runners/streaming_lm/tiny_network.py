"""A network small enough for a processor, of random weights in the true format."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from duologue.codecs.mimi import Mimi, MimiConfig
from duologue.codecs.mimi import save_random as save_random_codec
from duologue.engines.models.moshi_lm.checkpoint import load_weights
from duologue.engines.models.moshi_lm.config import tiny
from duologue.engines.models.moshi_lm.prompt import Prompt, moshi_prompt, personaplex_prompt
from duologue.engines.models.moshi_lm.random_checkpoint import save_random
from duologue.engines.models.moshi_lm.sampling import Taste
from duologue.engines.runners.streaming_lm.engine import EngineLimits, FrameEngine, Samples
from duologue.engines.runners.streaming_lm.frame_step import Network
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.pages import PageLimits

WINDOW = 24
CONFIG = tiny(window=WINDOW, text_card=320, audio_card=32, silence=range(8), sine=range(8, 16))
CODEC = MimiConfig(
    sample_rate_hz=600,
    filters=4,
    ratios=(4, 3, 2),
    dimension=16,
    layers=1,
    heads=2,
    feed_forward=32,
    context=20,
    codebook_size=32,
    codebook_dimension=8,
    stored_codebooks=8,
    codebooks=8,
)
SAMPLES = CODEC.frame_samples


@cache
def network() -> Network:
    """Make it once."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        model, codec = Path(folder) / "model.safetensors", Path(folder) / "mimi.safetensors"
        save_random(model, CONFIG, seed=3, dtype=torch.float32)
        save_random_codec(codec, CODEC, seed=4)
        weights = load_weights(model, CONFIG, dtype=torch.float32)
        return Network(CONFIG, weights, Mimi.load(codec, CODEC))


def engine(slots: int = 4, pages: int = 60, buckets: tuple[int, ...] = (4,)) -> FrameEngine:
    """Make an engine whose graphs are warm."""
    limits = EngineLimits(
        slots=slots,
        pages=PageLimits(pages, page_frames=4, window=WINDOW, chunk=16, growth_frames=8),
        buckets=buckets,
        chunks=(4, 16),
    )
    made = FrameEngine(network(), limits)
    made.warm_up()
    return made


def persona(tokens: int = 9) -> Prompt:
    """Make a prompt of so many text tokens."""
    return personaplex_prompt(CONFIG, [5 + n for n in range(tokens)], silent_frames=2)


def opening(seed: int = 1, prompt: Prompt | None = None, taste: Taste | None = None) -> Opening:
    """Make a beginning that draws at random."""
    return Opening(prompt or moshi_prompt(CONFIG), taste=taste or Taste(), seed=seed)


def speech(frames: int, seed: int) -> list[Samples]:
    """Make noise that differs from frame to frame."""
    generator = np.random.default_rng(seed)
    return list((0.3 * generator.standard_normal((frames, SAMPLES))).astype(np.float32))
