from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code_talker.predictor import CodePredictor
from duologue.engines.models.code_talker.sampling import Draw, Taste
from duologue.engines.models.decoder.stack import DecoderStack
from tests.unit.engines.models.decoder.random_weights import DENSE, write_random

pytestmark = pytest.mark.speech

BOOKS, CODES, WIDE = 4, 20, 24
GREEDY = Taste(temperature=0, top_k=1)


def test_each_code_is_drawn_from_those_before_it(tmp_path: Path) -> None:
    config = replace(DENSE, positions=BOOKS)
    generator = torch.Generator().manual_seed(1)
    tables = torch.randn(BOOKS - 1, CODES, WIDE, generator=generator)
    heads = torch.randn(BOOKS - 1, CODES, DENSE.dimension, generator=generator)
    weight = torch.randn(DENSE.dimension, WIDE, generator=generator)
    bias = torch.randn(DENSE.dimension, generator=generator)
    with CheckpointFolder(write_random(tmp_path, config)) as folder:
        stack = DecoderStack(folder, "m", config, slots=3, length=BOOKS)
        whole = DecoderStack(folder, "m", config, slots=1, length=BOOKS)
    predictor = CodePredictor(stack, tables.unbind(), heads.unbind(), (weight, bias))
    hidden = torch.randn(3, WIDE, generator=generator)
    first = torch.tensor([4, 9, 4])
    for _ in range(2):  # the second frame finds the keys of the first one in the ring
        codes = predictor.draw(hidden, first, Draw.of([1] * 3, [0] * 3, hidden.device), GREEDY)
        assert codes.shape == (3, BOOKS)
        assert codes[:, 0].tolist() == first.tolist()
        for row in range(3):
            given = [hidden[row], *(tables[k][codes[row, k]] for k in range(BOOKS - 1))]
            whole.forget(0)
            made = whole.step(F.linear(torch.stack(given), weight, bias)[None], [0], [0])[0]
            expected = [int(F.linear(made[k + 1], heads[k]).argmax()) for k in range(BOOKS - 1)]
            assert codes[row, 1:].tolist() == expected
