"""The sizes of a transformer, as ``config.json`` names them. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from duologue.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeScaling:
    """How Llama 3 stretches positions: long waves by ``factor``, short ones not at all."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_positions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertsConfig:
    """A layer of experts in place of one gated layer.

    Args:
        chosen: Experts of each row.
        shared: Size of the one that all rows pass; 0: there is none.
        normalised: The weights of the chosen ones add up to one.
    """

    count: int
    chosen: int
    feed_forward: int
    shared: int = 0
    normalised: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """A transformer.

    Args:
        window: How many positions attention sees, the current one included; ``None``: all.
        rope_sections: How many pairs of components turn with the row and the column of what stands
            in a picture; all others turn with time.
    """

    dimension: int
    layers: int
    heads: int
    kv_heads: int
    head_dimension: int
    feed_forward: int
    epsilon: float
    positions: int
    rope_base: float
    rope_scaling: RopeScaling | None = None
    window: int | None = None
    experts: ExpertsConfig | None = None
    rope_sections: tuple[int, int] | None = None

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> DecoderConfig:
        """Read a section of ``config.json``.

        Raises:
            ConfigError: Something is missing, or is of a kind that is not known here.
        """
        if values.get("hidden_act", "silu") != "silu":
            raise ConfigError(f"hidden_act is {values['hidden_act']}; only silu is known")
        try:
            heads = int(values["num_attention_heads"])
            dimension = int(values["hidden_size"])
            return cls(
                dimension=dimension,
                layers=int(values["num_hidden_layers"]),
                heads=heads,
                kv_heads=int(values.get("num_key_value_heads") or heads),
                head_dimension=int(values.get("head_dim") or dimension // heads),
                feed_forward=int(values["intermediate_size"]),
                epsilon=float(values["rms_norm_eps"]),
                positions=int(values["max_position_embeddings"]),
                rope_base=_rope_base(values),
                rope_scaling=_rope_scaling(values),
                experts=_experts(values),
                rope_sections=_rope_sections(values),
            )
        except KeyError as exc:
            raise ConfigError(f"config.json does not say {exc.args[0]} of a transformer") from exc


def _rope(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what newer files keep in one place, and older ones in two."""
    return values.get("rope_parameters") or values.get("rope_scaling") or {}


def _rope_base(values: Mapping[str, Any]) -> float:
    return float(_rope(values).get("rope_theta") or values["rope_theta"])


def _rope_scaling(values: Mapping[str, Any]) -> RopeScaling | None:
    rope = _rope(values)
    kind = rope.get("rope_type") or rope.get("type") or "default"
    # Positions in three dimensions are the same number thrice where there is only text.
    if kind in ("default", "mrope"):
        return None
    if kind != "llama3":
        raise ConfigError(f"rope_type is {kind}; default and llama3 are known")
    return RopeScaling(
        factor=float(rope["factor"]),
        low_freq_factor=float(rope["low_freq_factor"]),
        high_freq_factor=float(rope["high_freq_factor"]),
        original_positions=int(rope["original_max_position_embeddings"]),
    )


def _rope_sections(values: Mapping[str, Any]) -> tuple[int, int] | None:
    rope = _rope(values)
    if not rope.get("mrope_interleaved"):
        return None
    _, rows, columns = rope["mrope_section"]
    return int(rows), int(columns)


def _experts(values: Mapping[str, Any]) -> ExpertsConfig | None:
    # Newer files call them local.
    count = values.get("num_experts") or values.get("num_local_experts")
    if not count:
        return None
    if values.get("mlp_only_layers") or values.get("decoder_sparse_step", 1) != 1:
        raise ConfigError("only transformers whose layers all have experts are known")
    return ExpertsConfig(
        count=int(count),
        chosen=int(values["num_experts_per_tok"]),
        feed_forward=int(values["moe_intermediate_size"]),
        shared=int(values.get("shared_expert_intermediate_size") or 0),
        normalised=bool(values.get("norm_topk_prob", False)),
    )
