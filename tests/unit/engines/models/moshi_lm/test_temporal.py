from __future__ import annotations

import pytest
import torch
from torch import Tensor

from duologue.engines.models.moshi_lm import temporal
from duologue.engines.models.moshi_lm.config import ZERO, MoshiConfig
from duologue.engines.models.moshi_lm.weights import MoshiWeights
from tests.golden.moshi_lm.stepping import Stepper

pytestmark = pytest.mark.torch


def random_rows(config: MoshiConfig, count: int, seed: int = 3) -> list[tuple[int, ...]]:
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(config.audio_card, (count, config.streams), generator=generator)
    return [tuple(row) for row in codes.tolist()]


def test_tokens_are_looked_up_each_in_its_own_table(
    weights: MoshiWeights, config: MoshiConfig
) -> None:
    text, code = config.text_card + 1, config.audio_card + 1
    tables = weights.embeddings.split([text, *[code] * (2 * config.codebooks)])
    row = torch.tensor([[config.text_initial, *range(2 * config.codebooks - 1), ZERO]])
    wanted = sum(table[t] for table, t in zip(tables, row[0], strict=True) if t != ZERO)
    found = temporal.embed(weights, row.int())
    torch.testing.assert_close(found[0], wanted)


def test_reading_at_once_equals_reading_one_by_one_also_past_the_window(
    weights: MoshiWeights, config: MoshiConfig
) -> None:
    rows = random_rows(config, 3 * config.window)
    at_once = Stepper(weights, config).read(rows, [0] * len(rows))
    stepper = Stepper(weights, config)
    one_by_one = torch.cat([stepper.read([row], [0]) for row in rows])
    torch.testing.assert_close(at_once, one_by_one, rtol=1e-4, atol=1e-5)


def test_nothing_is_changed_by_what_comes_later(weights: MoshiWeights, config: MoshiConfig) -> None:
    rows = random_rows(config, 10)
    other = rows[:6] + random_rows(config, 4, seed=4)
    a = Stepper(weights, config).read(rows, [0] * 10)
    b = Stepper(weights, config).read(other, [0] * 10)
    assert torch.equal(a[:6], b[:6])
    assert not torch.allclose(a[6:], b[6:])


def test_a_stream_is_the_same_alone_and_among_others_bit_for_bit(
    weights: MoshiWeights, config: MoshiConfig
) -> None:
    mine = random_rows(config, 20)

    def run(others_seed: int) -> Tensor:
        stepper = Stepper(weights, config, streams=3)
        left = random_rows(config, 20, others_seed)
        right = random_rows(config, 20, others_seed + 1)
        return torch.stack(
            [stepper.read(list(rows), [0, 1, 2])[1] for rows in zip(left, mine, right, strict=True)]
        )

    assert torch.equal(run(5), run(50))
