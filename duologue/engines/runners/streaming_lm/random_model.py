"""A small model of noise, with all of its files, under the names that the published ones have.

For tests and demonstrations of the machinery: what it says is noise as well.
"""

from __future__ import annotations

from pathlib import Path

from duologue.codecs.mimi import save_random as save_random_codec
from duologue.engines.models.moshi_lm.random_checkpoint import (
    save_random,
    save_random_voice,
    train_vocabulary,
)
from duologue.engines.runners.streaming_lm.loading import NETWORKS

WEIGHTS = "model.safetensors"
CODEC = "tokenizer-e351c8d8-checkpoint125.safetensors"
VOCABULARY = "tokenizer_spm_32k_3.model"
VOICES = "voices"

VOICE_NAMES = ("hum", "hiss")
_VOICE_FRAMES = 8

_SENTENCES = [
    "A person and a model talk at the same time, and both are heard by the other one.",
    "Every frame lasts eighty milliseconds; in most of them no word begins at all.",
    "What is said here is noise, since nobody has taught these numbers anything yet.",
    "Yes, no, well, then again: hello there, how are you today? I am fine, thank you.",
]


def write_random_model(folder: Path, *, network: str = "moshi-tiny", seed: int = 1) -> None:
    """Write language model, codec, vocabulary and voices of a network into a folder."""
    config, codec = NETWORKS[network]
    (folder / VOICES).mkdir(parents=True, exist_ok=True)
    save_random(folder / WEIGHTS, config, seed)
    save_random_codec(folder / CODEC, codec, seed)
    train_vocabulary(folder / VOCABULARY, config, _SENTENCES)
    for number, name in enumerate(VOICE_NAMES):
        path = folder / VOICES / f"{name}.pt"
        save_random_voice(path, config, _VOICE_FRAMES, seed + number)
