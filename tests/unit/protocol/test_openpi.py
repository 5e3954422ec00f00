from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from duologue.core.errors import ClientError
from duologue.protocol.limits import MAX_VALUES
from duologue.protocol.openpi import read_values, write_values

pack = msgspec.msgpack.encode


def marked(data: object = b"\x01\x02", dtype: object = "|u1", shape: object = (2,)) -> Any:
    return {b"__ndarray__": True, b"data": data, b"dtype": dtype, b"shape": shape}


@given(arrays.arrays(st.sampled_from(["<f4", "|u1", "<i8", "<f2", "|b1"]), arrays.array_shapes()))
def test_an_array_comes_back(array: np.ndarray[Any, Any]) -> None:
    read = read_values(write_values({"a": array, "n": 3}))
    assert read["n"] == 3
    again = read["a"]
    assert isinstance(again, np.ndarray)
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.tobytes() == array.tobytes()


def test_maps_lie_flat_and_scalars_are_arrays_without_dimensions() -> None:
    scalar = {b"__npgeneric__": True, b"data": 7, b"dtype": "<i4"}
    values = read_values(pack({b"images": {"left": marked()}, "seed": scalar, "prompt": "x"}))
    assert list(values) == ["images/left", "seed", "prompt"]
    assert np.asarray(values["images/left"]).tolist() == [1, 2]
    assert np.asarray(values["seed"]).shape == ()


@given(st.binary(max_size=200))
def test_other_bytes_are_refused_in_our_words(message: bytes) -> None:
    with suppress(ClientError):
        assert all(isinstance(name, str) for name in read_values(message))


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"\xc1", "invalid_msgpack"),
        (pack([1]), "invalid_msgpack"),
        (b"\xdd\xff\xff\xff\xff" * 1000, "invalid_msgpack"),
        (b"\xdd\xff\xff\xff\xff" + bytes(70_000), "limit_exceeded"),
        (b"\xdc\xff\xff" + bytes(70_000), "invalid_msgpack"),
        (pack({1: 2}), "invalid_value"),
        (pack({b"\xff": 2}), "invalid_value"),
        (pack({"k" * 257: 2}), "limit_exceeded"),
        (pack({"a": {"b": {"c": {"d": {"e": 1}}}}}), "limit_exceeded"),
        (pack({"a/b": 1, "a": {"b": 1}}), "invalid_value"),
        (pack({"a": marked(shape=(3,))}), "invalid_value"),
        (pack({"a": marked(shape=(-2,))}), "invalid_value"),
        (pack({"a": marked(shape=(2**62, 2**62))}), "invalid_value"),
        (pack({"a": marked(shape=(True, 2))}), "invalid_value"),
        (pack({"a": marked(b"", shape=(0, 2**64 - 1))}), "invalid_value"),
        (pack({"a": marked(b"", "<f4", (0, 2**63 - 1))}), "invalid_value"),
        (pack({"a": marked(b"", "<f4", (0, 2**62, 2**62))}), "invalid_value"),
        (pack({"a": marked(shape=[1] * 9)}), "limit_exceeded"),
        (pack({"a": marked(shape=2)}), "invalid_value"),
        (pack({"a": marked(data="text")}), "invalid_value"),
        (pack({"a": marked(dtype="|O8")}), "invalid_value"),
        (pack({"a": marked(dtype="<c8")}), "invalid_value"),
        (pack({"a": marked(dtype="<f3")}), "invalid_value"),
        (pack({"a": marked(dtype="f4,f4")}), "invalid_value"),
        (pack({"a": marked(dtype=None)}), "invalid_value"),
        (pack({"a": {b"__npgeneric__": 1, b"data": 300, b"dtype": "|u1"}}), "invalid_value"),
        (pack({"a": {b"__npgeneric__": 1, b"data": "x", b"dtype": "|u1"}}), "invalid_value"),
        (pack({"a": {b"__npgeneric__": 1, b"data": 1e300, b"dtype": "<f4"}}), "invalid_value"),
        (pack({"a": msgspec.msgpack.Ext(1, b"")}), "invalid_msgpack"),
        (pack({"a": [msgspec.msgpack.Ext(1, b"")]}), "invalid_msgpack"),
    ],
)
def test_what_is_wrong_has_a_code(message: bytes, code: str) -> None:
    with pytest.raises(ClientError) as caught:
        read_values(message)
    assert caught.value.code == code


def test_many_values_are_refused_before_they_are_made() -> None:
    with pytest.raises(ClientError) as caught:
        read_values(pack({"a": [0] * (MAX_VALUES + 1)}))
    assert caught.value.code == "limit_exceeded"
