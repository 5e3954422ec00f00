"""A policy shaped as pi0: one transformer reads, a smaller one beside it draws actions from noise.

The flow goes from noise at time 1 to actions at time 0. Both transformers have as many
layers and the same heads, and share their attention: the expert's tokens look at the keys and
values of what was read, which are worked out once for each observation. Unlike pi0, pictures are
cut into patches without a vision model before it, and the task is read byte by byte. This module
must not know jobs or payloads.

Source:
    Black et al., "pi0: A Vision-Language-Action Flow Model for General Robot Control", 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from duologue.engines.runners.policy.safetensors_file import Shapes, Weights

Floats: TypeAlias = npt.NDArray[np.float32]
Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 16)]

EPSILON = 1e-6
ROPE_BASE = 10_000.0
PERIODS = (4e-3, 4.0)
"""Shortest and longest period of the embedding of the flow's time, which runs from 1 to 0."""

BYTES = 256
CHANNELS = 3


class PolicyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``config.json`` of a checkpoint.

    Args:
        width, mlp: Of the reader; ``expert_width`` and ``expert_mlp`` of the expert.
        head_dim: Even; all heads share one key and one value.
        patch: Side of a patch; ``image_width`` and ``image_height`` are multiples of it.
    """

    width: Count
    mlp: Count
    expert_width: Count
    expert_mlp: Count
    layers: Count
    heads: Count
    head_dim: Count
    patch: Count
    image_width: Count
    image_height: Count
    cameras: Count
    state_dim: Count
    action_dim: Count
    horizon: Count

    @property
    def patches(self) -> int:
        """Of one picture."""
        return (self.image_width // self.patch) * (self.image_height // self.patch)

    def fault(self) -> str | None:
        """Say what of it cannot be, if anything."""
        if self.image_width % self.patch or self.image_height % self.patch:
            size = f"{self.image_width}x{self.image_height}"
            return f"pictures of {size} cannot be cut into patches of {self.patch}"
        if self.head_dim % 2 or self.expert_width % 2:
            return "head_dim and expert_width must be even"
        return None


def weight_shapes(config: PolicyConfig) -> Shapes:
    """Return the name and the shape of every weight of a checkpoint."""
    c = config
    shapes: dict[str, tuple[int, ...]] = {
        "vision.patch.weight": (c.width, c.patch * c.patch * CHANNELS),
        "vision.patch.bias": (c.width,),
        "vision.position": (c.cameras * c.patches, c.width),
        "language.embed": (BYTES, c.width),
        "expert.norm": (c.expert_width,),
    }
    for name, inner, outer in (
        ("state_proj", c.state_dim, c.expert_width),
        ("action_in_proj", c.action_dim, c.expert_width),
        ("action_time_mlp_in", 2 * c.expert_width, c.expert_width),
        ("action_time_mlp_out", c.expert_width, c.expert_width),
        ("action_out_proj", c.expert_width, c.action_dim),
    ):
        shapes[f"{name}.weight"] = (outer, inner)
        shapes[f"{name}.bias"] = (outer,)
    for part, width, mlp in (
        ("reader", c.width, c.mlp),
        ("expert", c.expert_width, c.expert_mlp),
    ):
        for layer in range(c.layers):
            at = f"{part}.layers.{layer}"
            shapes |= {
                f"{at}.input_norm": (width,),
                f"{at}.q_proj": (c.heads * c.head_dim, width),
                f"{at}.k_proj": (c.head_dim, width),
                f"{at}.v_proj": (c.head_dim, width),
                f"{at}.o_proj": (width, c.heads * c.head_dim),
                f"{at}.mlp_norm": (width,),
                f"{at}.gate_proj": (mlp, width),
                f"{at}.up_proj": (mlp, width),
                f"{at}.down_proj": (width, mlp),
            }
    return shapes


@dataclass(frozen=True, slots=True)
class Read:
    """An observation that was read: keys and values of each layer, ``[tokens, head_dim]``."""

    keys: Sequence[Floats]
    values: Sequence[Floats]
    state: Floats


class FlowPolicy:
    """The model; it keeps nothing between two calls.

    Args:
        weights: Of the shapes that ``weight_shapes`` gives.
    """

    def __init__(self, config: PolicyConfig, weights: Weights) -> None:
        self.config = config
        self._weights = weights

    def read(self, pictures: npt.NDArray[np.uint8], state: Floats, prompt: bytes) -> Read:
        """Read an observation.

        Args:
            pictures: ``[cameras, height, width, 3]``.
            state: ``[state_dim]``.
        """
        seen = self._linear("vision.patch", self._patches(pictures))
        seen = seen + self._weights["vision.position"]
        told = self._weights["language.embed"][np.frombuffer(prompt, np.uint8)]
        x = np.concatenate([seen, told])
        positions = np.arange(len(x))
        keys, values = [], []
        for layer in range(self.config.layers):
            at = f"reader.layers.{layer}"
            query, key, value = self._projected(at, x, positions)
            keys.append(key)
            values.append(value)
            if layer + 1 < self.config.layers:  # of the last, only these are looked at
                x = self._after_attention(at, x, self._attend(query, key, value, None))
        return Read(keys, values, self._linear("state_proj", state[None]))

    def noise(self, seed: int) -> Floats:
        """Return the actions that the flow begins with, ``[horizon, action_dim]``."""
        shape = (self.config.horizon, self.config.action_dim)
        return np.random.default_rng(seed).standard_normal(shape, np.float32)

    def velocity(self, read: Read, actions: Floats, time: float) -> Floats:
        """Return where the flow goes at ``time``, ``[horizon, action_dim]``."""
        embedded = self._linear("action_in_proj", actions)
        when = np.broadcast_to(_time_embedding(time, embedded.shape[1]), embedded.shape)
        mixed = self._linear("action_time_mlp_in", np.concatenate([embedded, when], axis=1))
        x = np.concatenate([read.state, self._linear("action_time_mlp_out", _silu(mixed))])
        before = len(read.keys[0])
        positions = np.arange(before, before + len(x))
        hidden = np.zeros((len(x), before + len(x)), bool)
        hidden[0, before + 1 :] = True  # the state does not look at actions
        for layer in range(self.config.layers):
            at = f"expert.layers.{layer}"
            query, key, value = self._projected(at, x, positions)
            all_keys = np.concatenate([read.keys[layer], key])
            all_values = np.concatenate([read.values[layer], value])
            x = self._after_attention(at, x, self._attend(query, all_keys, all_values, hidden))
        return self._linear("action_out_proj", _norm(x[1:], self._weights["expert.norm"]))

    def _patches(self, pictures: npt.NDArray[np.uint8]) -> Floats:
        side = self.config.patch
        cameras, height, width, channels = pictures.shape
        cut = pictures.reshape(cameras, height // side, side, width // side, side, channels)
        flat = cut.transpose(0, 1, 3, 2, 4, 5).reshape(-1, side * side * channels)
        return flat.astype(np.float32) / np.float32(127.5) - np.float32(1)

    def _linear(self, name: str, x: Floats) -> Floats:
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _projected(
        self, at: str, x: Floats, positions: npt.NDArray[np.int64]
    ) -> tuple[Floats, Floats, Floats]:
        normed = _norm(x, self._weights[f"{at}.input_norm"])
        heads = (len(x), self.config.heads, self.config.head_dim)
        query = (normed @ self._weights[f"{at}.q_proj"].T).reshape(heads)
        key = normed @ self._weights[f"{at}.k_proj"].T
        value = normed @ self._weights[f"{at}.v_proj"].T
        return _turned(query, positions), _turned(key[:, None], positions)[:, 0], value

    def _attend(
        self, query: Floats, key: Floats, value: Floats, hidden: npt.NDArray[np.bool_] | None
    ) -> Floats:
        scores = np.einsum("qhd,kd->hqk", query, key) / np.float32(np.sqrt(query.shape[2]))
        if hidden is not None:
            scores = np.where(hidden, np.float32(-np.inf), scores)
        scores = np.exp(scores - scores.max(axis=2, keepdims=True))
        shares = scores / scores.sum(axis=2, keepdims=True)
        attended: Floats = np.einsum("hqk,kd->qhd", shares, value).reshape(len(query), -1)
        return attended

    def _after_attention(self, at: str, x: Floats, attended: Floats) -> Floats:
        x = x + attended @ self._weights[f"{at}.o_proj"].T
        normed = _norm(x, self._weights[f"{at}.mlp_norm"])
        gate = _gelu(normed @ self._weights[f"{at}.gate_proj"].T)
        up = normed @ self._weights[f"{at}.up_proj"].T
        return np.add(x, (gate * up) @ self._weights[f"{at}.down_proj"].T)


def _norm(x: Floats, weight: Floats) -> Floats:
    squares = np.mean(x * x, axis=-1, keepdims=True, dtype=np.float32)
    return np.divide(x, np.sqrt(squares + np.float32(EPSILON))) * (1 + weight)


def _silu(x: Floats) -> Floats:
    half = np.float32(0.5)
    made: Floats = np.multiply(half * x, 1 + np.tanh(half * x))
    return made


def _gelu(x: Floats) -> Floats:
    inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x * x * x)
    made: Floats = np.multiply(np.float32(0.5) * x, 1 + np.tanh(inner))
    return made


def _turned(x: Floats, positions: npt.NDArray[np.int64]) -> Floats:
    """Turn ``[tokens, heads, head_dim]`` by position; the halves of a head are the pairs."""
    half = x.shape[2] // 2
    rates = ROPE_BASE ** -(np.arange(half) / half)
    angles = (positions[:, None] * rates)[:, None]
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=2)


def _time_embedding(time: float, width: int) -> Floats:
    shortest, longest = PERIODS
    periods = shortest * (longest / shortest) ** np.linspace(0, 1, width // 2)
    angles = 2 * np.pi * time / periods
    return np.concatenate([np.sin(angles), np.cos(angles)]).astype(np.float32)
