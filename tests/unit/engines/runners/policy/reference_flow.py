"""The same model once more, written down plainly: float64, no cache, one head and token at a time.

At each step of the flow everything is read anew, pictures, task, state and actions together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from duologue.engines.runners.policy.flow import PolicyConfig

Doubles = npt.NDArray[np.float64]


def reference_actions(
    config: PolicyConfig,
    weights: Mapping[str, npt.NDArray[Any]],
    pictures: npt.NDArray[np.uint8],
    state: npt.NDArray[Any],
    prompt: bytes,
    noise: npt.NDArray[Any],
    steps: int,
) -> Doubles:
    w = {name: weight.astype(np.float64) for name, weight in weights.items()}
    actions = noise.astype(np.float64)
    for step in range(steps):
        actions = actions - _velocity(
            config, w, pictures, state, prompt, actions, 1 - step / steps
        ) / (steps)
    return actions


def _velocity(
    config: PolicyConfig,
    w: Mapping[str, Doubles],
    pictures: npt.NDArray[np.uint8],
    state: npt.NDArray[Any],
    prompt: bytes,
    actions: Doubles,
    time: float,
) -> Doubles:
    side = config.patch
    tokens: list[Doubles] = []
    for picture in pictures:
        for top in range(0, config.image_height, side):
            for left in range(0, config.image_width, side):
                patch = picture[top : top + side, left : left + side].ravel() / 127.5 - 1
                token = w["vision.patch.weight"] @ patch + w["vision.patch.bias"]
                tokens.append(token + w["vision.position"][len(tokens)])
    tokens += [w["language.embed"][byte] for byte in prompt]
    read = len(tokens)
    tokens.append(w["state_proj.weight"] @ state + w["state_proj.bias"])
    half = config.expert_width // 2
    periods = [4e-3 * 1000.0 ** (n / (half - 1)) for n in range(half)]
    when = [f(2 * np.pi * time / period) for f in (np.sin, np.cos) for period in periods]
    for action in actions:
        mixed = np.concatenate([_linear(w, "action_in_proj", action), when])
        hidden = _linear(w, "action_time_mlp_in", mixed)
        tokens.append(_linear(w, "action_time_mlp_out", hidden / (1 + np.exp(-hidden))))
    for layer in range(config.layers):
        tokens = _layer(config, w, tokens, read, layer)
    return np.array(
        [
            _linear(w, "action_out_proj", _norm(each, w["expert.norm"]))
            for each in tokens[read + 1 :]
        ]
    )


def _layer(
    config: PolicyConfig, w: Mapping[str, Doubles], tokens: list[Doubles], read: int, layer: int
) -> list[Doubles]:
    parts = ["reader" if n < read else "expert" for n in range(len(tokens))]
    at = [f"{part}.layers.{layer}" for part in parts]
    normed = [_norm(x, w[f"{a}.input_norm"]) for x, a in zip(tokens, at, strict=True)]
    keys = [_turn(w[f"{a}.k_proj"] @ x, n) for n, (x, a) in enumerate(zip(normed, at, strict=True))]
    values = [w[f"{a}.v_proj"] @ x for x, a in zip(normed, at, strict=True)]
    made = []
    for n, x in enumerate(tokens):
        seen = read if n < read else read + 1 if n == read else len(tokens)
        queries = (w[f"{at[n]}.q_proj"] @ normed[n]).reshape(config.heads, config.head_dim)
        heads = []
        for query in queries:
            scores = np.array([_turn(query, n) @ key for key in keys[:seen]])
            shares = np.exp(scores / np.sqrt(config.head_dim))
            heads.append(sum(s * v for s, v in zip(shares / shares.sum(), values, strict=False)))
        x = x + w[f"{at[n]}.o_proj"] @ np.concatenate(heads)
        inner = _norm(x, w[f"{at[n]}.mlp_norm"])
        gate = w[f"{at[n]}.gate_proj"] @ inner
        gate = gate * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        made.append(x + w[f"{at[n]}.down_proj"] @ (gate * (w[f"{at[n]}.up_proj"] @ inner)))
    return made


def _linear(w: Mapping[str, Doubles], name: str, x: Doubles) -> Doubles:
    return w[f"{name}.weight"] @ x + w[f"{name}.bias"]


def _norm(x: Doubles, weight: Doubles) -> Doubles:
    return x / np.sqrt((x @ x) / len(x) + 1e-6) * (1 + weight)


def _turn(x: Doubles, position: int) -> Doubles:
    half = len(x) // 2
    turned = np.empty(len(x))
    for n in range(half):
        angle = position * 10_000.0 ** (-n / half)
        turned[n] = x[n] * np.cos(angle) - x[n + half] * np.sin(angle)
        turned[n + half] = x[n + half] * np.cos(angle) + x[n] * np.sin(angle)
    return turned
