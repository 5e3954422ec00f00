"""A few samples more or less made into a frame of the right length.

So a client's clock is followed without a click or a gap. This module must not know why the numbers
differ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def fit_frame(samples: NDArray[np.float32], frame_samples: int) -> NDArray[np.float32]:
    """Read samples a little faster or slower, linearly interpolated, so that they fill a frame.

    A fiftieth of the length is a third of a semitone: not heard in speech.

    Shapes:
        samples: [taken] float32; returns: [frame_samples] float32, the same array if they are equal
    Raises:
        ValueError: There is nothing to fit.
    """
    if len(samples) == frame_samples:
        return samples
    if not len(samples):
        raise ValueError("a frame cannot be made of no samples")
    # The first sample stays the first: frames that follow each other join without a step.
    places = np.arange(frame_samples) * (len(samples) / frame_samples)
    fitted: NDArray[np.float64] = np.interp(places, np.arange(len(samples)), samples)
    return fitted.astype(np.float32)
