"""Turning by position, and keeping in pages."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from duologue.kernels.rope_kv_write import rope_angles, rope_kv_write
from tests.kernels.judge import DEVICE, FP8_FRACTION, Kernel, assert_as_good, noise, strided
from tests.kernels.paged import WIDTH, fill

pytestmark = pytest.mark.torch

POSITIONS = [0, 7, 8, 93, None]
HEADS, SIZE, PAGE = 2, 24, 8


def turn(x: Tensor, positions: Tensor, dtype: torch.dtype) -> Tensor:
    """The plain way, in some type: neighbouring channels are a complex number."""
    half = SIZE // 2
    exponents = torch.arange(half, device=DEVICE, dtype=torch.float64)
    angles = (positions.double()[:, None] * 10_000.0 ** (-exponents / half)).to(dtype)[:, None]
    real, imaginary = x.to(dtype).view(-1, HEADS, half, 2).unbind(3)
    cos, sin = angles.cos(), angles.sin()
    turned = torch.stack((real * cos - imaginary * sin, real * sin + imaginary * cos), 3)
    return turned.flatten(1)


@pytest.mark.parametrize("is_scaled", [False, True])
def test_queries_are_turned_and_keys_and_values_kept(
    kernel: Kernel, dtype: torch.dtype, is_scaled: bool
) -> None:
    spans = [None if position is None else (position, position) for position in POSITIONS]
    cache = fill(spans, HEADS, SIZE, PAGE, dtype)
    before = cache.pool.clone()
    qkv = noise(len(POSITIONS), 3 * HEADS * SIZE, dtype=dtype)
    scale = noise(len(POSITIONS)).abs() + 0.5 if is_scaled else None
    true = qkv.double() if scale is None else qkv.double() * scale.double()[:, None]
    angles = rope_angles(cache.rows.positions, SIZE)
    got = kernel("rope_kv_write").rope_kv_write(strided(qkv), angles, cache.pool, cache.rows, scale)
    query, key, value = true.chunk(3, 1)
    positions = cache.rows.positions
    live = positions >= 0
    exact = turn(query, positions, torch.float64)
    simple = turn(query, positions, torch.float32).to(dtype)
    assert_as_good(got[live], simple[live], exact[live])
    for row, position in enumerate(POSITIONS):
        if position is None:
            continue
        page = int(cache.rows.table[row, position // PAGE % WIDTH])
        kept = cache.pool[page, :, :, position % PAGE].flatten(1)
        exact = turn(key, positions, torch.float64)[row]
        assert_as_good(kept[0], turn(key, positions, torch.float32)[row].to(dtype), exact)
        assert_as_good(kept[1], value[row].to(dtype), value[row])
        before[page, :, :, position % PAGE] = cache.pool[page, :, :, position % PAGE]
    # Nothing else was touched, but for the page that belongs to nobody.
    assert torch.equal(cache.pool[1:].nan_to_num(7), before[1:].nan_to_num(7))


def test_keys_are_kept_in_eight_bits(narrow_kernel: Kernel) -> None:
    cache = fill([(3, 3)], HEADS, SIZE, PAGE, torch.float8_e4m3fn)
    qkv = noise(1, 3 * HEADS * SIZE, dtype=torch.bfloat16)
    angles = rope_angles(cache.rows.positions, SIZE)
    narrow_kernel("rope_kv_write").rope_kv_write(qkv, angles, cache.pool, cache.rows, None)
    kept = cache.pool[int(cache.rows.table[0, 0]), 1, :, 3].flatten().double()
    value = qkv[0, 2 * HEADS * SIZE :].double()
    assert ((kept - value).abs() <= value.abs() / FP8_FRACTION + 2**-10).all()


def test_the_implementation_follows_the_device() -> None:
    cache = fill([(3, 3)], HEADS, SIZE, PAGE, torch.float32)
    qkv = noise(1, 3 * HEADS * SIZE)
    got = rope_kv_write(qkv, rope_angles(cache.rows.positions, SIZE), cache.pool, cache.rows)
    query = qkv[:, : HEADS * SIZE]
    positions = cache.rows.positions
    exact = turn(query, positions, torch.float64)
    assert_as_good(got, turn(query, positions, torch.float32), exact)
