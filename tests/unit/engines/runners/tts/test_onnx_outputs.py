from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

from duologue.engines.runners.tts.onnx_outputs import with_output


def field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


def value(name: str) -> bytes:
    """A float vector of any length: ValueInfo{name, type{tensor{elem_type, shape{dim{}}}}}."""
    tensor = field(1, 1) + field(2, field(1, b""))
    return field(1, name.encode()) + field(2, field(1, tensor))


def node(kind: str, inputs: list[str], output: str) -> bytes:
    names = b"".join(field(1, name.encode()) for name in inputs)
    return names + field(2, output.encode()) + field(4, kind.encode())


@pytest.fixture
def model() -> bytes:
    """``out = -(x * x)``, written by hand; the square is inside."""
    graph = (
        field(1, node("Mul", ["x", "x"], "square"))
        + field(1, node("Neg", ["square"], "out"))
        + field(2, b"g")
        + field(11, value("x"))
        + field(12, value("out"))
    )
    return field(1, 8) + field(8, field(1, b"") + field(2, 13)) + field(7, graph)


def test_a_value_inside_the_model_becomes_its_last_output(model: bytes) -> None:
    session = ort.InferenceSession(with_output(model, "square"))
    assert [output.name for output in session.get_outputs()] == ["out", "square"]
    out, square = session.run(None, {"x": np.array([2, -3], np.float32)})
    assert square.tolist() == [4, 9]
    assert out.tolist() == [-4, -9]


def test_a_value_that_is_not_there_is_noticed_when_the_model_is_loaded(model: bytes) -> None:
    with pytest.raises(Fail, match="cube"):
        ort.InferenceSession(with_output(model, "cube"))


def test_long_names_have_long_lengths(model: bytes) -> None:
    name = "n" * 300
    added = with_output(b"", name)
    assert added.endswith(name.encode())
    assert added[0] == 7 << 3 | 2
    assert added[1] | 0x80 == added[1], "the length takes two bytes"
