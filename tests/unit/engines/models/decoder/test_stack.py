from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.decoder.config import DecoderConfig
from duologue.engines.models.decoder.stack import DecoderStack, Tap, standing
from tests.unit.engines.models.decoder.random_weights import DENSE, EXPERTS, write_random

pytestmark = pytest.mark.speech

KINDS = {
    "dense": DENSE,
    "experts": replace(DENSE, experts=EXPERTS),
    "window": replace(DENSE, window=5),
}
LONG = 23


def stack_of(
    folder: Path, config: DecoderConfig, slots: int = 3, length: int = LONG
) -> DecoderStack:
    with CheckpointFolder(write_random(folder, config)) as opened:
        return DecoderStack(opened, "m", config, slots=slots, length=length)


def inputs(rows: int, steps: int = LONG) -> Tensor:
    return torch.randn(rows, steps, DENSE.dimension, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 4, 7])
def test_steps_of_any_length_are_the_whole_at_once(tmp_path: Path, kind: str, size: int) -> None:
    stack = stack_of(tmp_path, KINDS[kind])
    x = inputs(1)
    whole = stack.step(x, [0], [0])
    parts = [stack.step(x[:, at : at + size], [1], [at]) for at in range(0, LONG, size)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)


def test_with_a_window_a_short_ring_is_enough(tmp_path: Path) -> None:
    config = KINDS["window"]
    x = inputs(1)
    whole = stack_of(tmp_path, config).step(x, [0], [0])
    ring = stack_of(tmp_path, config, length=5 + 3 - 1)
    parts = [ring.step(x[:, at : at + 3], [0], [at]) for at in range(0, LONG, 3)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_streams_of_any_age_share_a_step(tmp_path: Path, kind: str) -> None:
    stack = stack_of(tmp_path, KINDS[kind])
    x = inputs(2, 9)
    alone = [stack.step(x[row : row + 1], [2], [0])[0] for row in range(2)]
    stack.step(x[:1, :8], [0], [0])
    stack.step(x[1:, :3], [1], [0])
    both = stack.step(torch.stack((x[0, 8:9], x[1, 3:4])), [0, 1], [8, 3])
    torch.testing.assert_close(both[0, 0], alone[0][8], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(both[1, 0], alone[1][3], atol=1e-5, rtol=1e-5)


def test_what_comes_later_changes_nothing_before(tmp_path: Path) -> None:
    stack = stack_of(tmp_path, DENSE)
    x, other = inputs(1), inputs(1)
    other[:, 10:] = 1.0
    first, second = stack.step(x, [0], [0]), stack.step(other, [1], [0])
    torch.testing.assert_close(first[:, :10], second[:, :10])
    assert not torch.allclose(first[:, 10:], second[:, 10:])


def test_a_slot_that_is_used_again_remembers_nothing(tmp_path: Path) -> None:
    stack = stack_of(tmp_path, DENSE)
    x = inputs(1)
    fresh = stack.step(x[:, :6], [0], [0])
    stack.step(x, [1], [0])
    stack.forget(1)
    torch.testing.assert_close(stack.step(x[:, :6], [1], [0]), fresh)


def test_a_tap_sees_what_comes_of_some_layers_before_anything_is_added(tmp_path: Path) -> None:
    stack = stack_of(tmp_path, DENSE)
    first, last = Tap(1), Tap(DENSE.layers)
    x = inputs(1, 4)
    added = [torch.ones_like(x)]
    stack.step(x, [0], [0], tap=first)
    plain = stack.step(x, [1], [0], tap=last)
    assert last.seen is plain
    again = Tap(1)
    other = stack.step(x, [2], [0], added=added, tap=again)
    assert first.seen is not None
    assert again.seen is not None
    torch.testing.assert_close(again.seen, first.seen)
    assert not torch.allclose(first.seen, plain)
    assert not torch.allclose(other, plain)


def test_inputs_stand_where_a_picture_before_them_leaves_them() -> None:
    cpu = torch.device("cpu")
    assert standing([7, 3], [0, 0], 2, cpu) is None
    stands = standing([7, 3], [-4, 0], 2, cpu)
    assert stands is not None
    assert stands.tolist() == [[[3, 4]] * 3, [[3, 4]] * 3]
