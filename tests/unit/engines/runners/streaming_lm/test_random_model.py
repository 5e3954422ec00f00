from __future__ import annotations

from pathlib import Path

import pytest

from duologue.engines.models.moshi_lm.tokenizer import TextTokenizer
from duologue.engines.models.moshi_lm.voice_prompt import load_voice
from duologue.engines.runners.streaming_lm.loading import NETWORKS, load_network
from duologue.engines.runners.streaming_lm.random_model import (
    CODEC,
    VOCABULARY,
    VOICE_NAMES,
    VOICES,
    WEIGHTS,
    write_random_model,
)
from duologue.engines.runners.streaming_lm.settings import StreamingLmSettings

pytestmark = pytest.mark.torch


def test_its_files_load_as_the_published_ones_do(tmp_path: Path) -> None:
    write_random_model(tmp_path)
    config, _ = NETWORKS["moshi-tiny"]
    settings = StreamingLmSettings(
        network="moshi-tiny",
        weights=str(tmp_path / WEIGHTS),
        codec=str(tmp_path / CODEC),
        tokenizer=str(tmp_path / VOCABULARY),
    )
    assert load_network(settings).config == config
    assert TextTokenizer(tmp_path / VOCABULARY, config).encode("hello there")
    ends = [load_voice(tmp_path / VOICES / f"{name}.pt", config).end for name in VOICE_NAMES]
    assert ends[0] != ends[1]
