"""One step of many rows on one device: what people say in, what the model says out.

Each row is a slot's next frame, or, in a prefill, a position of some slot's prompt. Which slot,
which position and how much of the past it sees are numbers on the device; nothing else differs
between steps, so a CUDA graph can hold one. A masked row belongs to the slot behind the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from duologue.codecs.mimi import Mimi
from duologue.engines.models.moshi_lm import temporal
from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.sampling import Draw, Taste, next_tokens
from duologue.engines.models.moshi_lm.weights import MoshiWeights
from duologue.engines.runners.streaming_lm import eight_bits
from duologue.engines.runners.streaming_lm.pages import PageLimits
from duologue.kernels.paged_attention import paged_attention
from duologue.kernels.pages import Rows
from duologue.kernels.rope_kv_write import rope_kv_write

PLACE = 3
"""Numbers that tell where a row is: its slot, the oldest position that it sees, its position."""


@dataclass(frozen=True, slots=True)
class Network:
    """Everything that was loaded.

    Args:
        narrow: The temporal layers in 8 bits, in place of those of ``weights``.
    """

    config: MoshiConfig
    weights: MoshiWeights
    codec: Mimi
    narrow: tuple[eight_bits.NarrowLayer, ...] = ()

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.weights.embeddings.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the language model."""
        return self.weights.embeddings.dtype


class PagedMemory:
    """The keys and values of all layers, as the rows of one step see them."""

    __slots__ = ("_pool", "_rows")

    def __init__(self, pool: Tensor, rows: Rows) -> None:
        self._pool = pool
        self._rows = rows

    def write_and_attend(
        self,
        layer: int,
        qkv: Tensor,
        angles: tuple[Tensor, Tensor],
        row_scale: Tensor | None = None,
    ) -> Tensor:
        """See ``temporal.Memory``."""
        pool = self._pool[layer]
        query = rope_kv_write(qkv, angles, pool, self._rows, row_scale)
        return paged_attention(query, pool, self._rows)


class SlotState:
    """What the next frame of each slot needs besides keys, values and the codec's state.

    Shapes:
        text: [S + 1] int32, what the last step chose
        said, heard: [S + 1, codebooks] int32, what it chose, and what was heard with it
        seeds: [S + 1] int64
        text_temperature, code_temperature: [S + 1] float32
        text_top_k, code_top_k: [S + 1] int32
    """

    __slots__ = (
        "code_temperature",
        "code_top_k",
        "heard",
        "said",
        "seeds",
        "text",
        "text_temperature",
        "text_top_k",
    )

    def __init__(self, slots: int, config: MoshiConfig, device: torch.device) -> None:
        def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros((slots + 1, *shape), dtype=dtype, device=device)

        self.text = zeros()
        self.said = zeros(config.codebooks)
        self.heard = zeros(config.codebooks)
        self.seeds = zeros(dtype=torch.int64)
        self.text_temperature = zeros(dtype=torch.float32)
        self.code_temperature = zeros(dtype=torch.float32)
        self.text_top_k = zeros() + 1
        self.code_top_k = zeros() + 1

    def draw_as(self, slot: int, taste: Taste, seed: int) -> None:
        """Let a slot draw by a taste and a seed."""
        self.seeds[slot] = (seed + 2**63) % 2**64 - 2**63
        self.text_temperature[slot] = taste.text_temperature
        self.text_top_k[slot] = taste.text_top_k
        self.code_temperature[slot] = taste.code_temperature
        self.code_top_k[slot] = taste.code_top_k

    def draw(self, slots: Tensor, counters: Tensor) -> Draw:
        """Look up how the rows of some slots draw.

        Shapes:
            slots: [R] int64
            counters: [R] int32
        """
        return Draw(
            text_temperature=self.text_temperature[slots],
            text_top_k=self.text_top_k[slots],
            code_temperature=self.code_temperature[slots],
            code_top_k=self.code_top_k[slots],
            seeds=self.seeds[slots],
            counters=counters,
        )


class FrameStep:
    """The state of all slots, and the functions that advance it.

    Args:
        slots: How many streams there may be.
        kept: The type of keys and values: the model's own, or float8_e4m3fn.
    """

    def __init__(self, network: Network, slots: int, limits: PageLimits, kept: torch.dtype) -> None:
        config, device = network.config, network.device
        self.network = network
        self.slots = slots
        self.state = SlotState(slots, config, device)
        self.table = torch.zeros((slots + 1, limits.width), dtype=torch.int32, device=device)
        self.pool = torch.empty(
            (
                config.layers,
                limits.pages + 1,
                2,
                config.heads,
                limits.page_frames,
                config.head_dimension,
            ),
            dtype=kept,
            device=device,
        )
        self.encoder = network.codec.encoder(slots)
        self.decoder = network.codec.decoder(slots)
        self._is_late = torch.tensor(config.delays, device=device) > 0

    def frame(self, pcm: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """Hear a frame in each row, and say one.

        Shapes:
            pcm: [R, frame_samples] float32
            places: [R, PLACE] int32
            returns: samples [R, frame_samples] float32, and tokens [R, streams] int32: the text,
                what is said and what was heard in this frame
        """
        state, config = self.state, self.network.config
        slots = places[:, 0].long()
        heard = self.encoder.step_rows(pcm, slots)[:, :, 0].int()
        text, said = state.text[slots], state.said[slots]
        late = torch.where(self._is_late, state.heard[slots], heard)
        tokens = torch.cat((text[:, None], said, late), dim=1)
        hidden = self._read(temporal.embed(self.network.weights, tokens), places)
        draw = state.draw(slots, places[:, 2])
        next_text, next_said = next_tokens(self.network.weights, config, hidden, draw)
        spoken = torch.where(self._is_late, next_said, said)
        out = self.decoder.step_rows(spoken.long()[:, :, None], slots)
        state.text[slots] = next_text
        state.said[slots] = next_said
        state.heard[slots] = heard
        return out, torch.cat((text[:, None], spoken, heard), dim=1)

    def prefill(self, tokens: Tensor, given: Tensor, is_given: Tensor, places: Tensor) -> Tensor:
        """Read positions whose tokens are known, without saying anything.

        Shapes:
            tokens: [R, streams] int32
            given: [R, D], taken for the sum of embeddings where ``is_given`` [R] bool
            places: [R, PLACE] int32
            returns: [R, D], for ``begin``
        """
        hidden = temporal.embed(self.network.weights, tokens)
        return self._read(torch.where(is_given[:, None], given, hidden), places)

    def begin(self, hidden: Tensor, chosen: Tensor, places: Tensor, before: Tensor) -> None:
        """Choose what stands at the first position after a prefill.

        Shapes:
            hidden: [R, D], of the prefill
            chosen: [N] int64, which of its rows were the last of their slots
            places: [N, PLACE] int32, of these rows
            before: [N, 2 * codebooks] int32, what was said and heard in the frame that they end
        """
        state, config = self.state, self.network.config
        slots = places[:, 0].long()
        said, heard = before.chunk(2, dim=1)
        draw = state.draw(slots, places[:, 2])
        text, next_said = next_tokens(self.network.weights, config, hidden[chosen], draw)
        state.text[slots] = text
        state.said[slots] = torch.where(self._is_late, said, next_said)
        state.heard[slots] = heard

    def reset(self, slots: Tensor) -> None:
        """Forget the audio that some slots have heard and said.

        Shapes:
            slots: [n] int64
        """
        self.encoder.reset_rows(slots)
        self.decoder.reset_rows(slots)

    def copy_page(self, source: int, target: int) -> None:
        """Copy a page's keys and values in all layers."""
        self.pool[:, target].copy_(self.pool[:, source])

    def _read(self, hidden: Tensor, places: Tensor) -> Tensor:
        network = self.network
        slots, first, positions = places.t().contiguous().unbind(0)
        memory = PagedMemory(self.pool, Rows(self.table, slots, first, positions))
        if network.narrow:
            return eight_bits.forward(
                network.narrow, network.weights, network.config, hidden, positions, memory
            )
        return temporal.forward(network.weights, network.config, hidden, positions, memory)
