"""The layers with the past of many streams, each in a slot of its own.

Keys and values of a slot lie in a ring: position p at row p modulo its length. What lies there is
known by its position, so the ring may be shorter than the stream where attention has a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.decoder.config import DecoderConfig
from duologue.engines.models.decoder.layers import Layer
from duologue.engines.models.decoder.rope import angles, axes, frequencies, turn

_NOWHERE = -1


@dataclass(slots=True)
class Tap:
    """What comes of some of the layers, for those who read it beside the result.

    Shapes:
        seen: [R, T, D], before anything is added; normed after the last layer

    Args:
        layers: How many have been passed.
    """

    layers: int
    seen: Tensor | None = None


class DecoderStack:
    """A transformer without its embeddings and heads.

    Args:
        slots: Streams at a time.
        length: Positions that are kept of each; without a window no stream may be longer.

    Concurrency:
        One step at a time.
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        name: str,
        config: DecoderConfig,
        *,
        slots: int,
        length: int,
    ) -> None:
        self.config = config
        self.length = length
        self._layers = [
            Layer.load(folder, f"{name}.layers.{index}", config) for index in range(config.layers)
        ]
        self._norm = folder.tensor(f"{name}.norm.weight", config.dimension)
        device, dtype = self._norm.device, self._norm.dtype
        self._base = frequencies(config, device)
        self._axes = axes(config, device)
        shape = (config.layers, slots, config.kv_heads, length, config.head_dimension)
        self._keys = torch.zeros(shape, device=device, dtype=dtype)
        self._values = torch.zeros(shape, device=device, dtype=dtype)
        # [slots, length], the position that lies in each row
        self._places = torch.full((slots, length), _NOWHERE, dtype=torch.int64, device=device)

    def forget(self, slot: int) -> None:
        """Begin a new stream in a slot."""
        self._places[slot] = _NOWHERE

    def step(
        self,
        x: Tensor,
        slots: Sequence[int],
        starts: Sequence[int],
        *,
        stands: Tensor | None = None,
        added: Sequence[Tensor] = (),
        tap: Tap | None = None,
    ) -> Tensor:
        """Take the next positions of some streams.

        Shapes:
            x: [R, T, D]
            stands: [R, 3, T], time, row and column
            added: [R, T, D] each
            returns: [R, T, D], normed

        Args:
            slots: Of each row; each slot once.
            starts: The position of each row's first input.
            stands: Where inputs stand, if that is not where they come in their order.
            added: To what comes of the first layers.
            tap: Is given what comes of the layers that it names.
        """
        rows, steps, _ = x.shape
        device = x.device
        slot = torch.tensor(slots, device=device)
        first = torch.tensor(starts, device=device)
        positions = first[:, None] + torch.arange(steps, device=device)  # [R, T]
        ring = positions % self.length
        self._places[slot[:, None], ring] = positions
        used = min(self.length, max(starts) + steps)
        places = self._places[slot, :used][:, None, None]  # [R, 1, 1, used]
        now = positions[:, None, :, None]
        seen = (places <= now) & (places != _NOWHERE)
        if self.config.window is not None:
            seen &= places > now - self.config.window
        at = positions if stands is None else stands[:, self._axes].transpose(1, 2)
        by = angles(at, self._base)
        for index, layer in enumerate(self._layers):
            normed = self._normed(x, layer.norm1)
            query, key, value = self._heads(layer, normed)
            query, key = turn(query, by), turn(key, by)
            keys, values = self._keys[index], self._values[index]
            keys[slot[:, None], :, ring] = key.transpose(1, 2)
            values[slot[:, None], :, ring] = value.transpose(1, 2)
            attended = F.scaled_dot_product_attention(
                query,
                keys[slot, :, :used],
                values[slot, :, :used],
                attn_mask=seen,
                enable_gqa=True,
            )
            made = F.linear(attended.transpose(1, 2).flatten(2), layer.out)
            x = x + (made if layer.scale1 is None else layer.scale1 * made)
            normed = self._normed(x, layer.norm2)
            made = layer.feed_forward(normed.flatten(0, 1)).view(rows, steps, -1)
            x = x + (made if layer.scale2 is None else layer.scale2 * made)
            if tap is not None and index + 1 == tap.layers:
                tap.seen = x
            if index < len(added):
                x = x + added[index]
        x = self._normed(x, self._norm)
        if tap is not None and tap.layers == len(self._layers):
            tap.seen = x
        return x

    def _heads(self, layer: Layer, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, [R, H, T, head] each."""
        config = self.config
        heads = F.linear(x, layer.qkv).unflatten(2, (-1, config.head_dimension)).transpose(1, 2)
        query, key, value = heads.split((config.heads, config.kv_heads, config.kv_heads), dim=1)
        if layer.query_norm is not None and layer.key_norm is not None:
            query = self._normed(query, layer.query_norm)
            key = self._normed(key, layer.key_norm)
        return query, key, value

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, weight.shape, weight, self.config.epsilon)


def standing(
    starts: Sequence[int], shifts: Sequence[int], steps: int, device: torch.device
) -> Tensor | None:
    """Return where inputs stand that follow one another, but not from where they come in order.

    Shapes:
        returns: [R, 3, T], as ``DecoderStack.step`` takes it; ``None``: where they come

    Args:
        starts: The position of each row's first input.
        shifts: How far from it that stands.
    """
    if not any(shifts):
        return None
    first = torch.tensor(starts, device=device) + torch.tensor(shifts, device=device)
    order = torch.arange(steps, device=device)
    return (first[:, None] + order)[:, None].expand(-1, 3, -1)
