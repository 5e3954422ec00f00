from __future__ import annotations

import pytest
import torch

from duologue.codecs.mimi.slots import Slots, Snapshot

pytestmark = pytest.mark.torch


def make() -> tuple[Slots, torch.Tensor, torch.Tensor]:
    slots = Slots(3, device=torch.device("cpu"), dtype=torch.float32)
    return slots, slots.allocate((2, 2)), slots.allocate((), torch.int64)


def test_a_reset_clears_one_slot_only() -> None:
    slots, values, clock = make()
    values.fill_(float("nan"))
    clock.fill_(7)
    slots.reset(1)
    assert values[1].eq(0).all()
    assert values[[0, 2]].isnan().all()
    assert clock.tolist() == [7, 0, 7, 7]


def test_a_reset_of_slots_that_the_device_names_clears_those_only() -> None:
    slots, values, clock = make()
    values.fill_(float("nan"))
    clock.fill_(7)
    slots.reset_rows(torch.tensor([0, 2]))
    assert values[[0, 2]].eq(0).all()
    assert values[1].isnan().all()
    assert clock.tolist() == [0, 7, 0, 7]


def test_a_snapshot_is_a_copy_and_goes_into_any_slot() -> None:
    slots, values, clock = make()
    values[0] = torch.arange(4.0).view(2, 2)
    clock[0] = 5
    snapshot = slots.snapshot(0)
    values.fill_(-1)
    clock.fill_(9)
    slots.restore(2, snapshot)
    assert values[2].flatten().tolist() == [0, 1, 2, 3]
    assert values[:2].eq(-1).all()
    assert clock.tolist() == [9, 9, 5, 9]


def test_a_snapshot_of_another_shape_is_refused_and_changes_nothing() -> None:
    slots, values, clock = make()
    values.fill_(1)
    wrong = Snapshot((torch.zeros(2, 2), torch.zeros((), dtype=torch.int32)))
    with pytest.raises(ValueError, match="another shape"):
        slots.restore(0, wrong)
    assert values.eq(1).all()
    assert clock.eq(0).all()


@pytest.mark.parametrize("slot", [-1, 3])
def test_a_slot_that_does_not_exist_is_refused(slot: int) -> None:
    slots, _, _ = make()
    with pytest.raises(IndexError, match=f"slot {slot} of 3"):
        slots.reset(slot)


def test_no_slots_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Slots(0, device=torch.device("cpu"), dtype=torch.float32)


def test_who_takes_no_part_has_the_row_of_nobody() -> None:
    slots, values, _ = make()
    rows = slots.rows(torch.tensor([True, False, True]))
    assert rows.tolist() == [0, 3, 2]
    assert len(values) == 4
