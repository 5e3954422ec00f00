from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from duologue.core.errors import ConfigError
from duologue.engines.runners.policy.safetensors_file import read_weights
from tests.fakes.tiny_policy import write_safetensors

VALUES = np.array([[1.5, -2], [0, 0.25]], np.float32)


def written(folder: Path, **weights: npt.NDArray[Any]) -> Path:
    path = folder / "model.safetensors"
    write_safetensors(path, weights)
    return path


def test_all_widths_become_float32(tmp_path: Path) -> None:
    bfloat16 = (VALUES.view(np.uint32) >> 16).astype(np.uint16)
    path = written(tmp_path, a=VALUES, b=VALUES.astype(np.float16), c=bfloat16)
    weights = read_weights(path, dict.fromkeys("abc", (2, 2)))
    for weight in weights.values():
        assert weight.dtype == np.float32
        assert (weight == VALUES).all()


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"a": (2, 2), "b": (1,)}, "lacks 1 weights, as b"),
        ({}, "has 1 weights that nobody reads, as a"),
        ({"a": (4,)}, r"a has the shape \[2, 2\].* it must be \[4\]"),
    ],
)
def test_names_and_shapes_are_checked(
    tmp_path: Path, shapes: dict[str, tuple[int, ...]], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        read_weights(written(tmp_path, a=VALUES), shapes)


def test_other_types_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a is float64; read are F32"):
        read_weights(written(tmp_path, a=VALUES.astype(float)), {"a": (2, 2)})


@pytest.mark.parametrize("left", [0, 5, 30, -4])
def test_a_broken_file_is_refused(tmp_path: Path, left: int) -> None:
    path = written(tmp_path, a=VALUES)
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(ConfigError, match=r"model\.safetensors"):
        read_weights(path, {"a": (2, 2)})


def test_a_header_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes((4).to_bytes(8, "little") + b"nope" + bytes(8))
    with pytest.raises(ConfigError, match="no safetensors file"):
        read_weights(path, {"a": (2, 2)})
    with pytest.raises(ConfigError, match="cannot be read"):
        read_weights(tmp_path / "nowhere", {})
