"""The wire of openpi's clients: MessagePack in which NumPy arrays are maps with a mark.

Arrays are looked at where they lie in the message, never copied. This module must not know what an
observation is to hold.

Source:
    The package openpi-client 0.1.2, ``msgpack_numpy.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from duologue.protocol.errors import ErrorCode, over_limit, refused, shown
from duologue.protocol.msgpack_values import refuse_many_values

Array: TypeAlias = npt.NDArray[Any]
Values: TypeAlias = dict[str, object]
"""Names to arrays, numbers, text and whatever else MessagePack has. Maps lie flat, as ``a/b``."""

MAX_DIMENSIONS = 8
MAX_DEPTH = 4
MAX_NAME_CHARS = 256
_KINDS = "biuf"

_ARRAY, _SCALAR = b"__ndarray__", b"__npgeneric__"
_DATA, _DTYPE, _SHAPE = b"data", b"dtype", b"shape"
_ENCODER = msgspec.msgpack.Encoder()


def read_values(message: bytes) -> Values:
    """Read the message of a client.

    Raises:
        ProtocolError: It is no map, or an array in it is not what it says.
        LimitExceeded: It holds too many values, or too deep ones.
    """
    refuse_many_values(message)
    try:
        tree = msgspec.msgpack.decode(message, ext_hook=_refuse_extension)
    except (msgspec.MsgspecError, TypeError, ValueError, MemoryError, RecursionError) as exc:
        raise refused(
            f"the message is no MessagePack: {exc}", None, ErrorCode.INVALID_MSGPACK
        ) from None
    if not isinstance(tree, dict):
        raise refused(
            f"the message is {type(tree).__name__}, and must be a map",
            None,
            ErrorCode.INVALID_MSGPACK,
        )
    values: Values = {}
    _flatten(tree, "", 1, values)
    return values


def write_values(values: Mapping[str, object]) -> bytes:
    """Write a message to a client; arrays are among its values, not deeper."""
    return _ENCODER.encode(
        {
            name: _marked(each) if isinstance(each, np.ndarray) else each
            for name, each in values.items()
        }
    )


def _marked(array: Array) -> Mapping[bytes, object]:
    return {
        _ARRAY: True,
        _DATA: array.tobytes(),
        _DTYPE: array.dtype.str,
        _SHAPE: array.shape,
    }


def _flatten(tree: dict[object, object], above: str, depth: int, values: Values) -> None:
    if depth > MAX_DEPTH:
        raise over_limit("maps within maps", depth, MAX_DEPTH, above)
    for key, value in tree.items():
        name = f"{above}/{_name(key)}" if above else _name(key)
        if not isinstance(value, dict):
            found: object = value
        elif _ARRAY in value:
            found = _array(value, name)
        elif _SCALAR in value:
            found = _scalar(value, name)
        else:
            _flatten(value, name, depth + 1, values)
            continue
        if name in values:
            raise refused(f"{shown(name)} is there twice", name)
        values[name] = found


def _refuse_extension(code: int, _data: memoryview) -> object:
    raise ValueError(f"values of the extension type {code} are not read")


def _name(key: object) -> str:
    try:
        name = key.decode() if isinstance(key, bytes) else key
    except UnicodeDecodeError:
        name = None
    if not isinstance(name, str):
        raise refused(f"the key {shown(key)} is no text", None)
    if len(name) > MAX_NAME_CHARS:
        raise over_limit("a key", len(name), MAX_NAME_CHARS, name[:MAX_NAME_CHARS], "characters")
    return name


def _array(marked: dict[object, object], name: str) -> Array:
    data, shape, dtype = marked.get(_DATA), marked.get(_SHAPE), _dtype(marked, name)
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise refused(f"{name}: the shape {shown(shape)} is no list of sizes", name)
    if len(shape) > MAX_DIMENSIONS:
        raise over_limit(f"{name}: dimensions", len(shape), MAX_DIMENSIONS, name)
    size = dtype.itemsize
    for side in shape:
        size *= side
    if not isinstance(data, bytes) or len(data) != size:
        given = len(data) if isinstance(data, bytes) else 0
        raise refused(
            f"{name}: {shape} of {dtype.str} is {size} bytes, and {given} are there", name
        )
    try:
        return np.frombuffer(data, dtype).reshape(shape)
    except (ValueError, OverflowError):  # empty, and yet longer than NumPy can count
        raise refused(f"{name}: the shape {shape} is too large", name) from None


def _scalar(marked: dict[object, object], name: str) -> Array:
    value, dtype = marked.get(_DATA), _dtype(marked, name)
    if not isinstance(value, int | float):
        raise refused(f"{name}: {shown(value)} is no number", name)
    try:
        with np.errstate(over="raise"):
            return np.array(value, dtype)
    except (ValueError, OverflowError, FloatingPointError):
        raise refused(f"{name}: {shown(value)} does not fit into {dtype.str}", name) from None


def _dtype(marked: dict[object, object], name: str) -> np.dtype[Any]:
    raw = marked.get(_DTYPE)
    text = raw.decode("ascii", "replace") if isinstance(raw, bytes) else raw
    try:
        # Only what arrays of numbers are called; NumPy itself would read whole structures.
        if isinstance(text, str) and len(text) == 3 and text[1] in _KINDS:
            return np.dtype(text)
    except TypeError:
        pass
    raise refused(f"{name}: arrays of {shown(raw)} are not read; send numbers, as <f4 or |u1", name)
