from __future__ import annotations

import pytest
import torch

from duologue.engines.runners.streaming_lm.opening import Opening
from tests.unit.engines.runners.streaming_lm.tiny_network import CONFIG, persona

pytestmark = pytest.mark.torch


def test_a_voice_comes_before_the_rows_of_the_prompt() -> None:
    prompt = persona(3)
    voice = torch.randn(2, CONFIG.dimension)
    rows = Opening(prompt, voice=voice).rows()
    assert rows == [None, None, *prompt.rows]
    assert Opening(prompt, voice=voice).positions == len(rows)
    assert Opening(prompt).positions == len(prompt.rows) == len(Opening(prompt).rows())
