from __future__ import annotations

import numpy as np
import pytest

from duologue.codecs.sample_slip import fit_frame

FRAME = 1920


def tone(samples: int) -> np.ndarray:
    return np.sin(2 * np.pi * 440 / 24_000 * np.arange(samples)).astype(np.float32)


def test_a_frame_of_the_right_length_passes_untouched() -> None:
    frame = tone(FRAME)
    assert fit_frame(frame, FRAME) is frame


@pytest.mark.parametrize("taken", [FRAME - 38, FRAME - 1, FRAME + 1, FRAME + 38])
def test_frames_that_were_slipped_join_without_a_click(taken: int) -> None:
    wave = tone(taken + FRAME)
    joined = np.concatenate([fit_frame(wave[:taken], FRAME), wave[taken:]])
    assert joined.dtype == np.float32
    assert len(joined) == 2 * FRAME
    # The steepest part of the tone, a little faster; its last sample may repeat the one before.
    steepest = 2 * np.pi * 440 / 24_000
    assert np.abs(np.diff(joined)).max() <= 2.1 * steepest
    assert np.abs(joined).max() <= 1.0


def test_nothing_cannot_be_fitted() -> None:
    with pytest.raises(ValueError, match="no samples"):
        fit_frame(tone(0), FRAME)
