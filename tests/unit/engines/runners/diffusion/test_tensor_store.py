from __future__ import annotations

import pytest
import torch

from duologue.engines.runners.diffusion.tensor_store import TensorStore, bytes_of

pytestmark = pytest.mark.torch


def numbers(count: int) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.uint8)


def test_what_was_not_asked_for_longest_makes_room() -> None:
    store = TensorStore(100)
    for key in "ab":
        store.put(key, numbers(40))
    store.get("a")
    store.put("c", numbers(40))
    assert store.get("b") is None
    assert store.get("a") is not None
    assert store.bytes == 80


def test_what_is_too_large_alone_is_not_kept_and_costs_nobody_his_place() -> None:
    store = TensorStore(100)
    store.put("a", numbers(40))
    store.put("b", numbers(101))
    assert (store.get("b"), store.bytes) == (None, 40)


def test_a_key_is_kept_once() -> None:
    store = TensorStore(100)
    store.put("a", numbers(40))
    store.put("a", numbers(60))
    assert store.bytes == 60
    store.drop("a")
    store.drop("a")
    assert store.bytes == 0
    store.put("a", numbers(40))
    store.clear()
    assert (store.get("a"), store.bytes) == (None, 0)


def test_all_tensors_of_a_result_count() -> None:
    assert bytes_of((numbers(3), [numbers(4), None], "words")) == 7
