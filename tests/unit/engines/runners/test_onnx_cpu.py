from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from duologue.core.errors import ConfigError
from duologue.engines.runners.onnx_cpu import open_onnx


def field(number: int, content: bytes | int) -> bytes:
    """One field of a protocol buffer; all numbers and lengths here are below 128."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


def negating_model() -> bytes:
    """An ONNX model y = -x on two floats."""
    shape = field(1, field(1, 2))
    tensor = field(2, field(1, field(1, 1) + field(2, shape)))
    node = field(1, b"x") + field(2, b"y") + field(4, b"Neg")
    graph = field(1, node) + field(2, b"g")
    graph += field(11, field(1, b"x") + tensor) + field(12, field(1, b"y") + tensor)
    return field(1, 8) + field(7, graph) + field(8, field(1, b"") + field(2, 13))


def test_a_model_is_opened_and_run(tmp_path: Path) -> None:
    path = tmp_path / "neg.onnx"
    path.write_bytes(negating_model())
    (result,) = open_onnx(str(path), threads=1).run(None, {"x": np.array([1, -2], np.float32)})
    assert result.tolist() == [-1, 2]


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.onnx.*duologue models pull"):
        open_onnx(str(tmp_path / "nothing.onnx"), threads=1)
