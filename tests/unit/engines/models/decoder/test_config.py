from __future__ import annotations

from typing import Any

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.models.decoder.config import DecoderConfig, ExpertsConfig, RopeScaling

pytestmark = pytest.mark.speech

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 512,
    "rope_theta": 1000.0,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def test_what_a_file_does_not_say_follows_from_the_rest() -> None:
    config = DecoderConfig.read(SIZES)
    assert (config.kv_heads, config.head_dimension) == (4, 8)
    assert (config.rope_base, config.rope_scaling, config.experts) == (1000.0, None, None)


def test_older_and_newer_files_say_the_same_of_positions() -> None:
    older = DecoderConfig.read({**SIZES, "rope_scaling": LLAMA3})
    newer = {key: value for key, value in SIZES.items() if key != "rope_theta"}
    newer["rope_parameters"] = {**LLAMA3, "rope_theta": 1000.0}
    assert DecoderConfig.read(newer) == older
    assert older.rope_scaling == RopeScaling(
        factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_positions=8192
    )


@pytest.mark.parametrize("name", ["num_experts", "num_local_experts"])
def test_experts_are_read_by_both_of_their_names(name: str) -> None:
    given = {**SIZES, name: 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    expected = ExpertsConfig(count=8, chosen=2, feed_forward=16, shared=0, normalised=False)
    assert DecoderConfig.read(given).experts == expected


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hidden_act": "gelu"}, "gelu"),
        ({"rope_scaling": {"type": "yarn"}}, "yarn"),
        ({"num_experts": 4, "mlp_only_layers": [0]}, "experts"),
    ],
)
def test_what_is_not_known_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        DecoderConfig.read({**SIZES, **change})


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match="hidden_size"):
        DecoderConfig.read({key: value for key, value in SIZES.items() if key != "hidden_size"})
