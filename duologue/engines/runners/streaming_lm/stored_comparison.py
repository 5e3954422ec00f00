"""``comparison`` of a model whose files lie somewhere: loads them, and makes the call."""

from __future__ import annotations

from pathlib import Path

import msgspec
import torch

from duologue.engines.models.moshi_lm.tokenizer import TextTokenizer
from duologue.engines.payloads import LockstepStart
from duologue.engines.runners.streaming_lm.beginnings import Beginnings
from duologue.engines.runners.streaming_lm.comparison import Comparison, Progress, compare
from duologue.engines.runners.streaming_lm.loading import load_codec, load_network
from duologue.engines.runners.streaming_lm.prepared import Samples
from duologue.engines.runners.streaming_lm.settings import StreamingLmSettings


def compare_stored(
    settings: StreamingLmSettings, start: LockstepStart, speech: Samples, tell: Progress
) -> Comparison:
    """Load a model as it is without any mode, and compare.

    Args:
        settings: Of the runner; its modes are not looked at.
        start: How the call begins.
        speech: What the person says, [n] float32 at 24 kHz.

    Raises:
        ConfigError: A file is missing or does not fit, or the recording does not.
        EngineError: There is no such voice, or the persona is longer than the window.
    """
    wide = msgspec.structs.replace(settings, eight_bit_weights=False, narrow_codec=False)
    # On a processor too, since that is what the modes are held against.
    network = load_network(wide, torch.bfloat16)
    narrow = load_codec(msgspec.structs.replace(settings, narrow_codec=True))
    beginnings = Beginnings(
        network.config,
        TextTokenizer(Path(settings.tokenizer), network.config),
        Path(settings.voices) if settings.voices else None,
        settings.voice,
        network.device,
        network.dtype,
    )
    return compare(network, narrow, beginnings.opening(start), speech, tell)
