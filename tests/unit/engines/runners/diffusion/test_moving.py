from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from duologue.engines.runners.diffusion.moving import PART_BYTES, copy_in_parts, move_in_parts

pytestmark = pytest.mark.diffusion

ELSEWHERE = torch.device("meta")
"""The one other device that every machine has; it keeps shapes only."""


class Turns:
    def __init__(self) -> None:
        self.taken = 0
        self.is_mine = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        assert not self.is_mine
        self.taken, self.is_mine = self.taken + 1, True
        yield
        self.is_mine = False


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(8, 4)
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))


def test_all_is_moved_each_in_a_turn() -> None:
    model, turns = Model(), Turns()
    move_in_parts(model, ELSEWHERE, turns)
    assert {each.device for each in (*model.parameters(), *model.buffers())} == {ELSEWHERE}
    assert turns.taken == 1 + 2 + 5
    move_in_parts(model, ELSEWHERE, turns)
    assert turns.taken == 8, "what is there is not touched"


def test_a_device_without_its_number_is_the_same_one() -> None:
    model, turns = Model(), Turns()
    move_in_parts(model, torch.device("cpu:0"), turns)
    assert turns.taken == 0


def test_a_large_one_is_moved_in_several_turns() -> None:
    model, turns = torch.nn.Linear(1024, 3 * (PART_BYTES >> 12) + 1, bias=False), Turns()
    move_in_parts(model, ELSEWHERE, turns)
    assert model.weight.is_meta
    assert turns.taken == 1 + 4, "room for it, three parts, and the rest"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8])
def test_parts_make_up_the_whole(dtype: torch.dtype) -> None:
    turns = Turns()
    columns = 2 * PART_BYTES // dtype.itemsize // 3 + 5
    source = (torch.arange(3 * columns) % 251).to(dtype).view(3, columns)
    target = torch.zeros_like(source)
    copy_in_parts(source, target, turns)
    assert torch.equal(source, target)
    assert turns.taken == 3
