from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from duologue.core.errors import ConfigError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code2wav.fronts import EmbeddedCodes, Front, QuantizedCodes
from tests.fakes.tiny_speech.qwen3_omni import BOOKS, CODES

pytestmark = pytest.mark.speech

FRAMES, LATENT, HIDDEN, ENTRY = 30, 12, 8, 6
GIVEN = torch.randint(CODES, (2, FRAMES, BOOKS), generator=torch.Generator().manual_seed(1))
SECTION = {
    "sliding_window": 5,
    "num_quantizers": BOOKS,
    "codebook_size": CODES,
    "hidden_size": HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 100,
    "rope_theta": 10_000.0,
}


def quantized(folder: Path, slots: int = 2) -> QuantizedCodes:
    """One of random weights, by the names of Qwen3-TTS."""
    generator = torch.Generator().manual_seed(2)
    tensors: dict[str, torch.Tensor] = {}

    def put(name: str, *shape: int) -> None:
        tensors[f"d.{name}"] = torch.randn(shape, generator=generator) * shape[-1] ** -0.5

    for part, books in (("rvq_first", 1), ("rvq_rest", BOOKS - 1)):
        put(f"quantizer.{part}.input_proj.weight", ENTRY, LATENT, 1)
        put(f"quantizer.{part}.output_proj.weight", LATENT, ENTRY, 1)
        for book in range(books):
            name = f"quantizer.{part}.vq.layers.{book}._codebook"
            put(f"{name}.embedding_sum", CODES, ENTRY)
            tensors[f"d.{name}.cluster_usage"] = torch.ones(CODES)
    put("pre_conv.conv.weight", LATENT, LATENT, 3)
    put("pre_conv.conv.bias", LATENT)
    for side, shape in (("input", (HIDDEN, LATENT)), ("output", (LATENT, HIDDEN))):
        put(f"pre_transformer.{side}_proj.weight", *shape)
        put(f"pre_transformer.{side}_proj.bias", shape[0])
    put("pre_transformer.norm.weight", HIDDEN)
    for layer in range(2):
        name = f"pre_transformer.layers.{layer}"
        for part in "qkvo":
            put(f"{name}.self_attn.{part}_proj.weight", HIDDEN, HIDDEN)
        for part, shape in (("gate", (16, HIDDEN)), ("up", (16, HIDDEN)), ("down", (HIDDEN, 16))):
            put(f"{name}.mlp.{part}_proj.weight", *shape)
        for part in ("input_layernorm", "post_attention_layernorm"):
            put(f"{name}.{part}.weight", HIDDEN)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text("{}")
    with CheckpointFolder(folder) as opened:
        return QuantizedCodes(opened, "d", SECTION, slots=slots, longest=FRAMES)


def check_steps(front: Front) -> None:
    with torch.inference_mode():
        whole = front(GIVEN, [0, 1], [0, 0])
        for size in (1, 4):
            front.reset(1)
            parts = [front(GIVEN[1:, at : at + size], [1], [at]) for at in range(0, FRAMES, size)]
            joined = torch.cat(parts, dim=2)
            torch.testing.assert_close(joined, whole[1:], atol=1e-5, rtol=1e-5)


def test_quantized_codes_in_steps_are_the_whole_at_once(tmp_path: Path) -> None:
    check_steps(quantized(tmp_path))


def test_embedded_codes_in_steps_are_the_whole_at_once(
    tiny_speech: Callable[[str], Path],
) -> None:
    with CheckpointFolder(tiny_speech("qwen3_omni")) as folder:
        section = folder.section("code2wav_config")
        check_steps(EmbeddedCodes(folder, "code2wav", section, slots=2, longest=FRAMES))


def test_what_the_configuration_does_not_say_is_named(tmp_path: Path) -> None:
    quantized(tmp_path)
    less = {key: value for key, value in SECTION.items() if key != "num_quantizers"}
    with CheckpointFolder(tmp_path) as folder, pytest.raises(ConfigError, match="num_quantizers"):
        QuantizedCodes(folder, "d", less, slots=1, longest=1)
