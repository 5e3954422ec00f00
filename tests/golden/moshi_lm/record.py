"""Records what the reference implementation of Moshi says, greedily, with random weights.

Needs the package ``moshi`` 0.2.13, so it runs in an environment of its own (``make parity``):

    python -m tests.golden.moshi_lm.record             write the golden files of the tests
    python -m tests.golden.moshi_lm.record --compare   hold ours against the reference, now

Both layouts of a checkpoint go through the reference's own loader, which must read them alike.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import torch
from moshi.models.lm import LMGen, LMModel
from moshi.models.loaders import _lm_kwargs
from safetensors.torch import save_file
from torch import Tensor

from duologue.engines.models.moshi_lm.config import MoshiConfig, tiny
from duologue.engines.models.moshi_lm.layout import Layout
from tests.golden.moshi_lm import seeded_weights
from tests.golden.moshi_lm.stepping import says

FOLDER = Path(__file__).parent
WINDOW = 48
FRAMES = 110
"""Twice around the window, and more."""
USER_SEED = 7


def reference(
    config: MoshiConfig,
    tensors: dict[str, Tensor],
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> LMModel:
    sizes = _lm_kwargs | {
        "dim": config.dimension,
        "num_heads": config.heads,
        "num_layers": config.layers,
        "context": config.window,
        "text_card": config.text_card,
        "card": config.audio_card,
        "depformer_dim": config.depth_dimension,
        "depformer_dim_feedforward": config.depth_hidden * 3 // 2,
        "depformer_num_heads": config.depth_heads,
        "depformer_num_layers": config.depth_layers,
    }
    model = LMModel(device=device, dtype=dtype, **sizes).eval()
    model.load_state_dict(tensors)
    return model


def user_codes(config: MoshiConfig) -> list[list[int]]:
    generator = torch.Generator().manual_seed(USER_SEED)
    codes = torch.randint(config.audio_card, (FRAMES, config.codebooks), generator=generator)
    return codes.tolist()


def reference_says(model: LMModel, heard: list[list[int]]) -> list[list[int]]:
    """What it answers to each frame. Of the first one it hears nothing, so there is none."""
    said = []
    generator = LMGen(model, use_sampling=False)
    with torch.no_grad(), generator.streaming(1):
        for codes in [heard[0], *heard]:
            frame = generator.step(torch.tensor(codes).view(1, -1, 1))
            if frame is not None:
                said.append(frame[0, :, 0].tolist())
    return said


def per_step(config: MoshiConfig, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same weights under the names that the package saves."""
    return {
        name: tensor.contiguous()
        for name, tensor in reference(config, tensors).state_dict().items()
    }


def record() -> None:
    config = tiny(window=WINDOW)
    shapes = Layout("fused", config.codebooks).shapes(config)
    tensors = seeded_weights.make(shapes.items())
    heard = user_codes(config)
    golden = {
        "window": WINDOW,
        "sha256_of_bytes_in_order": seeded_weights.sha256(tensors),
        "tensors": list(shapes.items()),
        "user_codes": heard,
        "expected": reference_says(reference(config, tensors), heard),
    }
    (FOLDER / "moshi.json").write_text(json.dumps(golden) + "\n")
    print(f"recorded {FRAMES} frames in {FOLDER}")


def compare() -> None:
    config = tiny(window=WINDOW)
    shapes = Layout("fused", config.codebooks).shapes(config)
    tensors = seeded_weights.make(shapes.items())
    heard = user_codes(config)
    wanted = reference_says(reference(config, tensors), heard)
    alike = True
    with tempfile.TemporaryDirectory() as folder:
        for name, stored in (("fused", tensors), ("per step", per_step(config, tensors))):
            path = Path(folder) / f"{name}.safetensors"
            save_file(stored, path)
            got = says(path, config, heard)
            equal = sum(a == b for a, b in zip(got, wanted, strict=True))
            alike &= equal == FRAMES
            print(f"Moshi, {name} layout: {equal} of {FRAMES} frames equal (text and 8 codes)")
    if not alike:
        raise SystemExit("ours does not say what the reference says")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", action="store_true", help="compare, and write nothing")
    torch.set_num_threads(1)
    (compare if parser.parse_args().compare else record)()
