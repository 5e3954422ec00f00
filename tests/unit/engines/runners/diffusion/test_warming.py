from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import diffusers
import pytest

from duologue.engines.runners.diffusion.runner import DiffusionRunner
from duologue.engines.runners.diffusion.settings import DiffusionSettings
from duologue.engines.runners.diffusion.vae_tiles import add_blend_points
from duologue.engines.runners.diffusion.warming import Parts, measured, with_shorter_tiles
from tests.fakes.clock import FakeClock
from tests.unit.engines.runners.diffusion.driving import WORDS

pytestmark = pytest.mark.diffusion

Tiny = Callable[[str], Path]

SHORT_S = 0.020


def parts(ends: float, denoises: float = 0.0) -> Parts:
    return {"begins": 0.0, "denoises": denoises, "ends": ends}


class Made:
    """What is made takes so long, one after another."""

    def __init__(self, times: Iterable[Parts]) -> None:
        self._times = list(times)
        self.count = 0

    def __call__(self) -> Parts:
        self.count += 1
        return self._times.pop(0)


def test_the_first_one_does_not_count() -> None:
    make = Made([parts(9.0), parts(0.011, 0.002)])
    assert measured(make, SHORT_S) == parts(0.011, 0.002)
    assert make.count == 2


def test_one_that_is_long_is_measured_again_and_the_median_counts() -> None:
    make = Made([parts(9.0), parts(0.3, 0.001), parts(0.012, 0.003), parts(0.013, 0.002)])
    assert measured(make, SHORT_S) == parts(0.013, 0.002)
    make = Made([parts(9.0), parts(0.05), parts(0.07), parts(0.001)])
    assert measured(make, SHORT_S) == parts(0.05), "what is long as a rule stays so"


class TestTiles:
    def make(self, vae: Any, ends_s: dict[int, float]) -> Callable[[], Parts]:
        return lambda: parts(ends_s[vae.tile_sample_min_size])

    def vae(self, tiny: Tiny) -> Any:
        vae = diffusers.DiffusionPipeline.from_pretrained(tiny("sd3")).vae
        vae.enable_tiling()
        vae.tile_sample_min_size, vae.tile_latent_min_size = 1000, 125
        return vae

    def chosen(self, tiny: Tiny, ends_s: dict[int, float]) -> tuple[int, int, float]:
        vae = self.vae(tiny)
        found = with_shorter_tiles(
            vae, [512, 256, 128], self.make(vae, ends_s), SHORT_S, parts(ends_s[1000])
        )
        return vae.tile_sample_min_size, vae.tile_latent_min_size, found["ends"]

    def test_the_first_size_that_is_short_is_taken(self, tiny: Tiny) -> None:
        ends_s = {1000: 0.05, 512: 0.03, 256: 0.019, 128: 0.001}
        assert self.chosen(tiny, ends_s) == (256, 32, 0.019)

    def test_where_none_is_the_shortest_is(self, tiny: Tiny) -> None:
        ends_s = {1000: 0.05, 512: 0.03, 256: 0.06, 128: 0.07}
        assert self.chosen(tiny, ends_s) == (512, 64, 0.03)

    def test_also_as_it_was(self, tiny: Tiny) -> None:
        ends_s = {1000: 0.03, 512: 0.04, 256: 0.06, 128: 0.26}
        assert self.chosen(tiny, ends_s) == (1000, 125, 0.03)


class Slow:
    """A pipeline whose VAE takes long by the clock: for each blend, and the first of each size."""

    def __init__(self, folder: Path, blend_s: float, first_s: float = 0.0) -> None:
        self.clock = FakeClock()
        self.blends = 0
        self.sizes: set[tuple[int, ...]] = set()
        self._blend_s, self._first_s = blend_s, first_s
        self.pipe = diffusers.DiffusionPipeline.from_pretrained(folder)
        vae = self.pipe.vae
        vae.tile_sample_min_size, vae.tile_latent_min_size = 1024, 128
        for name in ("blend_v", "blend_h"):
            setattr(vae, name, self._slow(getattr(vae, name)))
        vae.decoder.mid_block.register_forward_pre_hook(self._see)

    def warmed(self, **how: Any) -> DiffusionRunner:
        settings = DiffusionSettings(
            folder="", call=WORDS, warm_width=384, warm_height=384, vae_tiling=True, **how
        )
        runner = DiffusionRunner(settings, lambda: None, self.clock, load=lambda _: self.pipe)
        runner.slice_s = 0.040
        runner.warm_up()
        return runner

    def _slow(self, blend: Callable[..., Any]) -> Callable[..., Any]:
        def slowly(*tiles: Any) -> Any:
            self.blends += 1
            self.clock.advance(self._blend_s)
            return blend(*tiles)

        return slowly

    def _see(self, _module: Any, args: Any) -> None:
        if args[0].shape not in self.sizes:
            self.sizes.add(args[0].shape)
            self.clock.advance(self._first_s)


def test_blends_of_tiles_are_parts_of_their_own(tiny: Tiny) -> None:
    slow = Slow(tiny("sd3"), blend_s=0.012)
    runner = slow.warmed(vae_tile=128)
    assert slow.blends > 40
    assert runner.longest_part_s == pytest.approx(0.012)


def test_kernels_that_are_loaded_for_a_size_of_tiles_are_no_part_of_it(tiny: Tiny) -> None:
    slow = Slow(tiny("sd3"), blend_s=0.001, first_s=0.3)
    slow.pipe.vae.decoder.conv_in.register_forward_pre_hook(
        lambda _module, args: slow.clock.advance(0.030 if args[0].shape[-1] > 32 else 0.015)
    )
    runner = slow.warmed()
    assert runner.pipelines.base.vae.tile_sample_min_size == 256
    assert runner.longest_part_s == pytest.approx(0.015)


def test_a_family_is_asked_for_the_blends_that_it_has() -> None:
    told: list[str] = []
    vae = SimpleNamespace(blend_t=lambda a, b, extent: told.append(f"{a}{b}{extent}"))
    add_blend_points(vae, lambda: told.append("point"))
    vae.blend_t("a", "b", extent=3)
    assert told == ["point", "ab3"]
    assert vars(vae).keys() == {"blend_t"}
