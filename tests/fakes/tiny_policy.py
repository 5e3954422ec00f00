"""A policy with random weights in the true format, and an observation that it takes.

``python -m tests.fakes.tiny_policy FOLDER`` writes a checkpoint and a pipeline file to try out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from duologue.engines.policy_offer import PolicyOffer
from duologue.engines.runners.policy.flow import PolicyConfig, weight_shapes

CONFIG = PolicyConfig(
    width=32,
    mlp=48,
    expert_width=16,
    expert_mlp=24,
    layers=2,
    heads=4,
    head_dim=8,
    patch=8,
    image_width=24,
    image_height=16,
    cameras=2,
    state_dim=8,
    action_dim=7,
    horizon=5,
)

OFFER = PolicyOffer(
    cameras=("observation/image", "observation/wrist_image"),
    width=CONFIG.image_width,
    height=CONFIG.image_height,
    state_dim=CONFIG.state_dim,
    horizon=CONFIG.horizon,
    action_dim=CONFIG.action_dim,
    steps=4,
)


def random_weights(config: PolicyConfig = CONFIG) -> dict[str, npt.NDArray[np.float32]]:
    draw = np.random.default_rng(7)
    return {
        name: (draw.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        for name, shape in weight_shapes(config).items()
    }


def write_safetensors(path: Path, weights: Mapping[str, npt.NDArray[Any]]) -> None:
    names = {np.dtype("<f4"): "F32", np.dtype("<f2"): "F16", np.dtype("<u2"): "BF16"}
    header: dict[str, object] = {"__metadata__": {"format": "np"}}
    at = 0
    for name, weight in weights.items():
        end = at + weight.nbytes
        header[name] = {
            "dtype": names.get(weight.dtype, str(weight.dtype)),
            "shape": weight.shape,
            "data_offsets": [at, end],
        }
        at = end
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    body = b"".join(weight.tobytes() for weight in weights.values())
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + body)


def write_checkpoint(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_bytes(msgspec.json.encode(CONFIG))
    write_safetensors(folder / "model.safetensors", random_weights())


def write_pipeline(folder: Path, **stage: Any) -> Path:
    """Write a checkpoint, and the file of a pipeline ``tiny_policy`` that runs on it."""
    write_checkpoint(folder)
    settings = {"folder": str(folder)}
    pipeline = {
        "extends": "policy",
        "name": "tiny_policy",
        "policy": msgspec.to_builtins(OFFER),
        "stages": [{"name": "policy", "settings": settings, **stage}],
    }
    path = folder / "tiny_policy.yaml"
    path.write_text(json.dumps(pipeline))  # JSON is YAML
    return path


def observation(seed: int | None = 1, **more: object) -> dict[str, object]:
    """What a robot sends, for ``protocol.openpi`` or openpi's own client."""
    draw = np.random.default_rng(3)
    size = (CONFIG.image_height, CONFIG.image_width, 3)
    pictures = {name: draw.integers(0, 256, size, np.uint8) for name in OFFER.cameras}
    state = draw.standard_normal(CONFIG.state_dim)
    asked = {} if seed is None else {"seed": seed}
    return {**pictures, OFFER.state_key: state, OFFER.prompt_key: "fold", **asked, **more}


if __name__ == "__main__":
    print(write_pipeline(Path(sys.argv[1])))  # noqa: T201
