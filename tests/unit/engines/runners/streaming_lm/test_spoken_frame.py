from __future__ import annotations

import numpy as np
import pytest

from duologue.engines.runners.streaming_lm.spoken_frame import SpokenFrame

pytestmark = pytest.mark.torch


def test_its_parts_stand_in_the_order_in_which_they_are_told() -> None:
    pcm = np.zeros(4, np.float32)
    slot, frame, sound, text, said, heard = SpokenFrame(1, 2, pcm, 3, (4,), (5,))
    assert (slot, frame, text, said, heard) == (1, 2, 3, (4,), (5,))
    assert sound is pcm
