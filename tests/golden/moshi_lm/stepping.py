"""Our model in plain steps: a prompt at once, then a frame in and a frame out. Greedy, float32."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from duologue.engines.models.moshi_lm import temporal
from duologue.engines.models.moshi_lm.checkpoint import load_weights
from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.prompt import Prompt, moshi_prompt
from duologue.engines.models.moshi_lm.sampling import GREEDY, Draw, Taste, next_tokens
from duologue.engines.models.moshi_lm.token_grid import Row, TokenGrid
from duologue.engines.models.moshi_lm.weights import MoshiWeights
from tests.fakes.moshi_memory import DenseMemory


class Stepper:
    """Streams of one model, each at its own age."""

    def __init__(self, weights: MoshiWeights, config: MoshiConfig, streams: int = 1) -> None:
        self.weights, self.config = weights, config
        self.memory = DenseMemory(config, streams)

    def read(self, rows: Sequence[Row], streams: Sequence[int]) -> Tensor:
        """Read one row for each stream named, and return what the model thinks then."""
        hidden = temporal.embed(self.weights, torch.tensor(rows, dtype=torch.int32))
        return self.think(hidden, streams)

    def think(self, hidden: Tensor, streams: Sequence[int]) -> Tensor:
        positions = self.memory.positions(streams)
        rows = self.memory.rows(streams)
        return temporal.forward(self.weights, self.config, hidden, positions, rows)

    def choose(
        self, hidden: Tensor, streams: Sequence[int], taste: Taste = GREEDY
    ) -> list[tuple[int, list[int]]]:
        counters = [self.memory.position(stream) for stream in streams]
        rows = len(streams)
        draw = Draw(
            torch.full((rows,), taste.text_temperature),
            torch.full((rows,), taste.text_top_k, dtype=torch.int32),
            torch.full((rows,), taste.code_temperature),
            torch.full((rows,), taste.code_top_k, dtype=torch.int32),
            torch.tensor([1000 + stream for stream in streams]),
            torch.tensor(counters, dtype=torch.int32),
        )
        text, codes = next_tokens(self.weights, self.config, hidden, draw)
        return list(zip(text.tolist(), codes.tolist(), strict=True))

    def begin(
        self, prompt: Prompt, stream: int = 0, voice: Tensor | None = None, taste: Taste = GREEDY
    ) -> TokenGrid:
        """Read a prompt at once."""
        hidden = temporal.embed(self.weights, torch.tensor(prompt.rows, dtype=torch.int32))
        if voice is not None:
            hidden = torch.cat((voice.to(hidden.dtype), hidden))
        thought = self.think(hidden, [stream] * len(hidden))
        text, said = self.choose(thought[-1:], [stream], taste)[0]
        return TokenGrid(self.config, prompt.last, text, said)

    def step(
        self, grids: dict[int, TokenGrid], heard: dict[int, Sequence[int]], taste: Taste = GREEDY
    ) -> dict[int, list[int]]:
        """Let the streams hear a frame each, and return what they say."""
        streams = list(heard)
        thought = self.read([grids[each].row(heard[each]) for each in streams], streams)
        said = {}
        for stream, (text, codes) in zip(
            streams, self.choose(thought, streams, taste), strict=True
        ):
            spoken = grids[stream].wrote(heard[stream], text, codes)
            said[stream] = [spoken.text, *spoken.codes]
        return said


def says(
    path: Path, config: MoshiConfig, heard: Sequence[Sequence[int]], prompt: Prompt | None = None
) -> list[list[int]]:
    """What the model of a checkpoint answers to each frame."""
    with torch.no_grad():
        stepper = Stepper(load_weights(path, config, dtype=torch.float32), config)
        grid = stepper.begin(prompt or moshi_prompt(config))
        return [stepper.step({0: grid}, {0: codes})[0] for codes in heard]
