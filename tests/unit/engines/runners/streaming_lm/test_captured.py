"""Functions on fixed tensors. On a processor they are called; graphs are tried on a GPU."""

from __future__ import annotations

import pytest
import torch

from duologue.engines.runners.streaming_lm.captured import Captured, Input, Output

pytestmark = pytest.mark.torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def test_inputs_are_written_and_outputs_found_in_the_same_place() -> None:
    numbers = Input((3,), torch.float32, DEVICE)
    double = Captured(lambda: numbers.tensor * 2, DEVICE)
    out = Output(double())
    for first in range(4):
        numbers.values[:] = (first, 5, 7)
        numbers.send()
        out.fetch(double())
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()
        assert out.values.tolist() == [2 * first, 10, 14]
