"""How long the parts of a pipeline's work are, and with which tiles those of its VAE are short.

This module must not know how work is sliced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, TypeAlias

import structlog

from duologue.engines.runners.diffusion.running import Phase
from duologue.engines.runners.diffusion.vae_tiles import kept_tiles, set_tile

log = structlog.get_logger(__name__)

TIMES = 3
"""What takes long is measured so often: once could be by chance."""

Parts: TypeAlias = dict[Phase, float]
"""Seconds of the longest part of each phase."""

Make: TypeAlias = Callable[[], Parts]
"""Makes something whole, and measures its parts."""


def measured(make: Make, short_s: float, tile: int = 0) -> Parts:
    """Return the parts as they are once kernels are loaded and chosen.

    Args:
        short_s: Where none is longer, once is enough; else the median of three.
        tile: For the log; 0: as the VAE has them.
    """
    make()  # the first one loads kernels and chooses among them
    times = [make()]
    if max(times[0].values()) > short_s:
        times += [make() for _ in range(TIMES - 1)]
    spread_ms = {phase: [round(1000 * each[phase], 1) for each in times] for phase in times[0]}
    log.info("diffusion_parts", vae_tile=tile, **spread_ms)
    return {phase: median(each[phase] for each in times) for phase in times[0]}


def with_shorter_tiles(
    vae: Any, sizes: Sequence[int], make: Make, short_s: float, parts: Parts
) -> Parts:
    """Have a VAE's tiles of the first size whose parts are short; returns the parts with it.

    Where those of none are, of the size whose parts are the shortest.

    Args:
        parts: With the tiles that it has.
    """
    best, with_best = parts, kept_tiles(vae)
    for pixels in sizes:
        set_tile(vae, pixels)
        parts = measured(make, short_s, pixels)
        if parts["ends"] < best["ends"]:
            best, with_best = parts, kept_tiles(vae)
        if parts["ends"] <= short_s:
            return parts
    with_best()
    make()  # what memory it takes depends on the tiles, too
    return best
