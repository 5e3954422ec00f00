from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch

from duologue.core.errors import ConfigError
from duologue.engines.media_payloads import DrawImage
from duologue.engines.runners.diffusion.vae_tiles import has_tiles, set_tile, smaller_tiles
from tests.unit.engines.runners.diffusion.driving import WORDS, Driven, pixels, runner_of
from tests.unit.engines.runners.diffusion.test_runner import image_of

pytestmark = [
    pytest.mark.diffusion,
    pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning"),
]

Tiny = Callable[[str], Path]

WIDE = DrawImage("a cat on a chair", 320, 192, 2, 3.0, 7)


def vae_of(folder: Path) -> Any:
    return diffusers.DiffusionPipeline.from_pretrained(folder).vae


def test_a_picture_in_tiles_is_the_librarys_in_tiles_of_that_size(tiny: Tiny) -> None:
    made = image_of(Driven(runner_of(tiny("sd3"), vae_tiling=True, vae_tile=128), WIDE).finish())

    pipe = diffusers.DiffusionPipeline.from_pretrained(tiny("sd3"))
    pipe.set_progress_bar_config(disable=True)
    pipe.vae.enable_tiling()
    # As the library's own documentation has it: both sizes say the same.
    pipe.vae.tile_sample_min_size, pipe.vae.tile_latent_min_size = 128, 16
    call: dict[str, Any] = {
        "prompt": WIDE.prompt,
        "width": 320,
        "height": 192,
        "num_inference_steps": 2,
        "guidance_scale": 3.0,
        "output_type": "np",
        **WORDS,
    }
    tiled = pipe(generator=torch.Generator().manual_seed(7), **call).images[0]
    assert np.array_equal(made, pixels(tiled))

    pipe.vae.disable_tiling()
    whole = pixels(pipe(generator=torch.Generator().manual_seed(7), **call).images[0])
    assert not np.array_equal(made, whole), "a tile is normalised by itself"
    untiled = image_of(Driven(runner_of(tiny("sd3")), WIDE).finish())
    assert np.array_equal(untiled, whole), "no tile that was not asked for"


@pytest.mark.parametrize("name", ["sd3", "qwenimage", "wan", "ltx", "hunyuanvideo"])
def test_each_family_is_told_in_its_own_way(name: str, tiny: Tiny) -> None:
    vae = vae_of(tiny(name))
    seen: list[tuple[int, ...]] = []
    vae.decoder.register_forward_pre_hook(lambda _module, args: seen.append(args[0].shape[-2:]))
    channels = vae.config.get("z_dim") or vae.config.latent_channels
    shape = (1, channels, 24, 24) if name == "sd3" else (1, channels, 1, 24, 24)
    with torch.no_grad():
        whole = vae.decode(torch.randn(shape)).sample.shape
        (largest,) = {tuple(each) for each in seen}
        per_latent = whole[-1] // 24
        assert largest == (24, 24)
        seen.clear()
        set_tile(vae, 16 * per_latent)
        tiled = vae.decode(torch.randn(shape)).sample.shape
    assert tiled == whole
    assert max(map(tuple, seen)) == (16, 16)
    # A quarter is shared with the next one: it begins twelve further on.
    assert {tuple(each) for each in seen} == {(16, 16), (16, 12), (12, 16), (12, 12)}


def test_sizes_that_a_vae_cannot_have_are_refused(tiny: Tiny) -> None:
    vae = vae_of(tiny("sd3"))
    with pytest.raises(ConfigError, match="multiples of 32 pixels"):
        set_tile(vae, 100)
    sound = vae_of(tiny("stableaudio"))
    assert not has_tiles(sound)
    with pytest.raises(ConfigError, match="no tiles"):
        set_tile(sound, 128)
    with pytest.raises(ConfigError, match="no tiles"):
        runner_of(tiny("stableaudio"), call={}, vae_tiling=True, vae_tile=128)


def test_smaller_tiles_are_tried_from_the_largest_on(tiny: Tiny) -> None:
    vae = vae_of(tiny("sd3"))
    assert smaller_tiles(vae, 1024) == [512, 384, 256, 192, 128]
    assert smaller_tiles(vae, 256) == [192, 128]
    set_tile(vae, 384)
    assert smaller_tiles(vae, 1024) == [256, 192, 128], "and not larger ones than there are"
    vae.disable_tiling()
    vae.config.block_out_channels = (1,) * 7
    assert smaller_tiles(vae, 1024) == [512, 256], "others would leave a part of a latent over"
