"""Mimi, the neural codec of Moshi: 24 kHz speech as 12.5 frames of a few codes a second, and back.

This package must not know sessions, models or where weights come from. It needs torch (extra
``torch``), so nothing but runners may import it.

Source:
    Défossez et al., "Moshi: a speech-text foundation model for real-time dialogue" (2024), section
    3.3; its convolutions are those of SEANet (Tagliasacchi et al., 2020), streamed as in Encodec
    (Défossez et al., 2022).
"""

from duologue.codecs.mimi.checkpoint import save_random
from duologue.codecs.mimi.config import MimiConfig
from duologue.codecs.mimi.model import Mimi
from duologue.codecs.mimi.slots import Snapshot
from duologue.codecs.mimi.streams import DecoderStream, EncoderStream

__all__ = [
    "DecoderStream",
    "EncoderStream",
    "Mimi",
    "MimiConfig",
    "Snapshot",
    "save_random",
]
