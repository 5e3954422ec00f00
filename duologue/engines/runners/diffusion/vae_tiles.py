"""The size of the tiles in which a VAE makes large pictures: families are told it differently.

What comes out is the library's own work in tiles of this size. This module must not know when
tiles are small enough.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

from duologue.core.errors import ConfigError

SMALLER = (512, 384, 256, 192, 128)
"""Pixels of a side that are tried, one after the other, where a picture as a whole takes long."""

_BLENDS = ("blend_v", "blend_h", "blend_t")
"""Methods that blend a tile into the next one: row after row, so the host tells a GPU little at a
time, and all of a large picture together take longer than any layer."""

_OVERLAP = 4
"""A tile shares one such part of its side with the next one, as the library has it."""


def has_tiles(vae: Any) -> bool:
    """Tell whether the size of its tiles can be said."""
    # The method alone is a name: every family has it.
    return hasattr(vae, "use_tiling") and (bool(_asked(vae)) or _has_two_sizes(vae))


def smaller_tiles(vae: Any, side: int) -> list[int]:
    """Return the sizes that it could have, the largest first, for pictures of such a side."""
    if not has_tiles(vae):
        return []
    step = _OVERLAP * _pixels_per_latent(vae)
    if vae.use_tiling:
        side = min(side, _tile_of(vae))
    return [pixels for pixels in SMALLER if pixels < side and pixels % step == 0]


def set_tile(vae: Any, pixels: int) -> None:
    """Have tiles of so many pixels a side; what is not larger is made as a whole.

    Raises:
        ConfigError: It has no tiles, or none of this size.
    """
    name = type(vae).__name__
    if not has_tiles(vae):
        raise ConfigError(f"the VAE {name} has no tiles whose size can be said (vae_tile)")
    per_latent = _pixels_per_latent(vae)
    if pixels % (_OVERLAP * per_latent):
        raise ConfigError(
            f"vae_tile is {pixels}: tiles of the VAE {name} are multiples of "
            f"{_OVERLAP * per_latent} pixels"
        )
    arguments = _arguments(vae, pixels)
    vae.enable_tiling(**arguments)
    if not arguments:
        vae.tile_sample_min_size = pixels
        vae.tile_latent_min_size = pixels // per_latent


def kept_tiles(vae: Any) -> Callable[[], None]:
    """Return what gives it the tiles again that it has now."""
    kept = {name: value for name, value in vars(vae).items() if name.startswith(("tile_", "use_"))}
    return lambda: vars(vae).update(kept)


def add_blend_points(vae: Any, point: Callable[[], None]) -> None:
    """Call ``point`` before each blend of two tiles."""
    for name in _BLENDS:
        blend = getattr(vae, name, None)
        if blend is not None:
            setattr(vae, name, _behind(point, blend))


def _behind(point: Callable[[], None], blend: Callable[..., Any]) -> Callable[..., Any]:
    def blended(*tiles: Any, **how: Any) -> Any:
        point()
        return blend(*tiles, **how)

    return blended


def _arguments(vae: Any, pixels: int) -> dict[str, int]:
    """Return what its ``enable_tiling`` wants to know, as far as it asks."""
    known = {"tile_sample_min_size": pixels}
    for side in ("height", "width"):
        known[f"tile_sample_min_{side}"] = pixels
        known[f"tile_sample_stride_{side}"] = pixels - pixels // _OVERLAP
        known[f"tile_sample_min_overlap_{side}"] = pixels // _OVERLAP
        known[f"tile_latent_min_{side}"] = pixels // _pixels_per_latent(vae)
    return {key: value for key, value in known.items() if key in _asked(vae)}


def _asked(vae: Any) -> Collection[str]:
    return inspect.signature(vae.enable_tiling).parameters.keys()


def _tile_of(vae: Any) -> int:
    """Return the size of its tiles as it is."""
    names = ("tile_sample_min_size", "tile_sample_min_height")
    return int(next(getattr(vae, name) for name in names if hasattr(vae, name)))


def _has_two_sizes(vae: Any) -> bool:
    return hasattr(vae, "tile_sample_min_size") and hasattr(vae, "tile_latent_min_size")


def _pixels_per_latent(vae: Any) -> int:
    told = getattr(vae, "spatial_compression_ratio", None)
    if told is not None:
        return int(told)
    return int(2 ** (len(vae.config.block_out_channels) - 1))
