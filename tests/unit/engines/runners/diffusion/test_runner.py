from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from duologue.codecs.pictures import decode, encode
from duologue.core.clock import SystemClock
from duologue.core.errors import ConfigError, OutOfMemory
from duologue.engines.lifecycle_port import OFFLOADED
from duologue.engines.media_payloads import DrawImage, ImageData, LoraChoice, StepsDone
from duologue.engines.payloads import TextDelta
from duologue.engines.runners.contract import HoldsMemory, LoadsInParts, Sliced
from duologue.engines.runners.diffusion.device_queue import HostQueue
from duologue.engines.runners.diffusion.runner import DiffusionRunner
from duologue.engines.runners.diffusion.settings import DiffusionSettings
from duologue.engines.runners.registry import RunnerRegistry
from duologue.engines.worker_model import WorkerModel
from tests.fakes.clock import FakeClock
from tests.unit.engines.runners.diffusion.driving import (
    CAT,
    WORDS,
    Driven,
    library,
    pixels,
    runner_of,
)

pytestmark = pytest.mark.diffusion

Tiny = Callable[[str], Path]


def image_of(driven: Driven, number: int = 0) -> Any:
    (image,) = [each for each in driven.of(ImageData, number) if each.partial < 0]
    return decode(image.data, 1 << 20)


def but(ask: DrawImage, **changes: Any) -> DrawImage:
    return msgspec.structs.replace(ask, **changes)


GUIDANCE = {"sd3": "guidance_scale", "flux": "guidance_scale", "qwenimage": "true_cfg_scale"}


@pytest.mark.parametrize(("name", "guidance"), GUIDANCE.items())
def test_alone_it_is_exactly_what_the_library_makes(name: str, guidance: str, tiny: Tiny) -> None:
    driven = Driven(runner_of(tiny(name), guidance_field=guidance, slice_ms=0.01), CAT).finish()

    more = {"negative_prompt": " "} if guidance == "true_cfg_scale" else {}
    made = library(
        tiny(name),
        prompt=CAT.prompt,
        width=64,
        height=48,
        num_inference_steps=3,
        seed=7,
        output_type="np",
        **{guidance: 3.0},
        **WORDS,
        **more,
    ).images[0]
    assert np.array_equal(image_of(driven), pixels(made))
    assert driven.of(StepsDone) == [StepsDone(1, 3), StepsDone(2, 3), StepsDone(3, 3)]
    assert driven.steps > 6, "slices end between blocks"


def test_together_they_are_as_if_alone(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"), slice_ms=60_000)
    asks = [CAT, but(CAT, prompt="a dog", seed=8), but(CAT, seed=9)]
    together = Driven(runner, *asks).finish()
    for number, ask in enumerate(asks):
        alone = image_of(Driven(runner, ask).finish())
        difference = np.abs(image_of(together, number).astype(int) - alone)
        assert difference.max() <= 1, "one step of 255"
    assert together.steps <= 5, "one batch, not three"


def test_the_same_seed_gives_the_same_image_whatever_came_before(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"))
    first = image_of(Driven(runner, CAT).finish())
    Driven(runner, but(CAT, width=32, height=32, steps=2, seed=1)).finish()
    assert np.array_equal(image_of(Driven(runner, CAT).finish()), first)
    assert not np.array_equal(image_of(Driven(runner, but(CAT, seed=8)).finish()), first)


def test_it_is_shown_while_it_is_made(tiny: Tiny) -> None:
    driven = Driven(runner_of(tiny("sd3")), but(CAT, steps=6, partials=2, media="webp"))
    driven.until(lambda: len(driven.of(ImageData)) == 1)
    assert driven.of(StepsDone) == [StepsDone(1, 6), StepsDone(2, 6)]
    driven.finish()
    assert [each.partial for each in driven.of(ImageData)] == [0, 1, -1]
    assert {each.media for each in driven.of(ImageData)} == {"webp"}
    assert {(each.width, each.height) for each in driven.of(ImageData)} == {(64, 48)}


def test_a_cancelled_image_is_given_up_within_a_step(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"), slice_ms=0.01)
    driven = Driven(runner, but(CAT, steps=500))
    driven.until(lambda: len(driven.of(StepsDone)) == 2)
    driven.jobs[0].cancelled = True
    steps = driven.steps
    driven.finish()
    assert driven.steps <= steps + 1
    assert len(driven.of(StepsDone)) == 2
    following = image_of(Driven(runner, CAT).finish())
    assert np.array_equal(following, image_of(Driven(runner_of(tiny("sd3")), CAT).finish()))


def test_others_of_a_batch_go_on_when_one_is_cancelled(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"), slice_ms=0.01)
    driven = Driven(runner, CAT, but(CAT, seed=8))
    driven.until(lambda: len(driven.of(StepsDone, 1)) == 1)
    driven.jobs[0].cancelled = True
    driven.finish()
    assert image_of(driven, 1).shape == (48, 64, 3)
    assert driven.of(ImageData, 0) == []


def test_what_comes_meanwhile_shares_the_next_batch(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"), slice_ms=60_000)
    driven = Driven(runner, but(CAT, steps=2), *[but(CAT, seed=seed) for seed in range(3)])
    driven.finish()
    assert all(image_of(driven, number).size for number in range(4))
    assert driven.steps <= 10


def test_an_image_can_begin_with_another_and_change_in_part(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"))
    grey = encode(np.full((48, 64, 3), 128, np.uint8), "png")
    ask = but(CAT, image=grey, strength=0.6, steps=5)
    driven = Driven(runner, ask).finish()

    from PIL import Image

    made = library(
        tiny("sd3"),
        "StableDiffusion3Img2ImgPipeline",
        prompt=CAT.prompt,
        image=Image.fromarray(np.full((48, 64, 3), 128, np.uint8)),
        strength=0.6,
        width=64,
        height=48,
        num_inference_steps=5,
        guidance_scale=3.0,
        seed=7,
        output_type="np",
        **WORDS,
    ).images[0]
    assert np.array_equal(image_of(driven), pixels(made))
    assert driven.of(StepsDone)[-1] == StepsDone(3, 3), "as many steps as there is to change"

    mask = np.zeros((48, 64, 3), np.uint8)
    mask[:, 32:] = 255
    masked = Driven(runner, but(ask, mask=encode(mask, "png"))).finish()
    assert image_of(masked).shape == (48, 64, 3)


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (but(CAT, width=4096, height=4096), "limit_exceeded"),
        (but(CAT, image=b"no picture"), "undecodable_image"),
        (but(CAT, lora=LoraChoice("nobody")), "unsupported"),
        (but(CAT, width=61), "diffusion_failed"),
        (TextDelta("hello"), "stage_failed"),
    ],
)
def test_what_cannot_be_made_fails_alone(ask: Any, code: str, tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"), max_total_pixels=1 << 20)
    driven = Driven(runner, ask, but(CAT, steps=1)).finish()
    error = driven.errors[0]
    assert error is not None
    assert error.code == code
    assert driven.errors[1] is None
    assert image_of(driven, 1).shape == (48, 64, 3)


def test_no_memory_fails_only_the_request_that_has_none(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"))
    transformer = runner.pipelines.base.transformer
    greedy = 0

    def allocate(_module: Any, args: Any, kwargs: Any) -> None:
        nonlocal greedy
        hidden = kwargs["hidden_states"]
        if len(hidden) > 2:  # guidance doubles the batch: more than one request
            greedy += 1
            raise torch.OutOfMemoryError("no memory")

    hook = transformer.register_forward_pre_hook(allocate, with_kwargs=True)
    driven = Driven(runner, CAT, but(CAT, seed=8)).finish()
    assert greedy == 1
    assert driven.errors == [None, None], "each had room alone"

    hook.remove()
    hook = transformer.register_forward_pre_hook(
        lambda _module, _args: (_ for _ in ()).throw(torch.OutOfMemoryError("none"))
    )
    failed = Driven(runner, CAT).finish()
    assert isinstance(failed.errors[0], OutOfMemory)
    hook.remove()
    assert image_of(Driven(runner, CAT).finish()).shape == (48, 64, 3)


def test_what_a_request_without_memory_had_is_free_again(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"))
    held: list[weakref.ref[torch.Tensor]] = []
    left: list[int] = []

    def allocate(_module: Any, _args: Any) -> None:
        left.append(sum(each() is not None for each in held))
        part = torch.zeros(1 << 20)
        held.append(weakref.ref(part))
        raise torch.OutOfMemoryError("no memory")

    hook = runner.pipelines.base.transformer.register_forward_pre_hook(allocate)
    driven = Driven(runner, CAT, but(CAT, seed=8)).finish()
    assert [type(error) for error in driven.errors] == [OutOfMemory, OutOfMemory]
    assert left == [0, 0, 0], "once together, then each alone"
    assert all(each() is None for each in held)
    hook.remove()
    assert image_of(Driven(runner, CAT).finish()).shape == (48, 64, 3)


def test_a_device_that_is_lost_ends_the_worker(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"))

    def fault(_module: Any, _args: Any) -> None:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    runner.pipelines.base.transformer.register_forward_pre_hook(fault)
    with pytest.raises(torch.AcceleratorError):
        Driven(runner, CAT).finish()


class Behind(HostQueue):
    """A device that is told ahead of what it does, as a GPU."""

    is_behind = True

    def __init__(self) -> None:
        self.marks = self.waits = 0

    def mark(self, ahead: int) -> None:
        self.marks += 1

    def finish(self) -> None:
        self.waits += 1


def test_only_a_shared_device_is_waited_for_and_only_where_a_slice_ends(tiny: Tiny) -> None:
    queue = Behind()
    settings = DiffusionSettings(folder=str(tiny("sd3")), call=WORDS, slice_ms=60_000)
    runner = DiffusionRunner(settings, lambda: None, FakeClock(), queue=queue)
    own = Driven(runner, CAT).finish()
    encoded = queue.waits
    assert encoded == 1, "before the picture is encoded, since the device rests meanwhile"
    assert own.steps == 1, "nobody waits for anything: it is not handed back"
    looked = queue.marks
    assert looked == 1, "blocks of a few milliseconds are passed by"

    runner.slice_s = 1000.0
    shared = Driven(runner, CAT).finish()
    assert queue.waits == encoded + 1 + shared.steps
    assert queue.marks > looked + 20, "each block, of which a slice may be made"
    assert shared.of(StepsDone) == own.of(StepsDone)
    assert shared.steps == 3, "it waits where another kind of work begins, not at each step's end"
    assert np.array_equal(image_of(shared), image_of(own))


def test_on_its_own_device_one_that_nobody_wants_ends_between_two_blocks(tiny: Tiny) -> None:
    settings = DiffusionSettings(folder=str(tiny("sd3")), call=WORDS, slice_ms=60_000)
    runner = DiffusionRunner(settings, lambda: None, FakeClock(), queue=Behind())
    driven = Driven(runner, but(CAT, steps=500))
    blocks = runner.pipelines.base.transformer.transformer_blocks
    begun = 0

    def cancel(_module: Any, _args: Any) -> None:
        nonlocal begun
        begun += 1
        driven.jobs[0].cancelled = begun == 6

    hook = blocks[0].register_forward_pre_hook(cancel)
    driven.finish()
    hook.remove()
    assert len(blocks) > 1
    assert begun == 6, "it ended before the next block, though nothing had ended the slice"
    assert image_of(Driven(runner, CAT).finish()).shape == (48, 64, 3)


def test_words_are_encoded_once(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"))
    Driven(runner, CAT).finish()
    Driven(runner, but(CAT, seed=8)).finish()
    assert (runner.pipelines.prompts.hits, runner.pipelines.prompts.misses) == (1, 1)


def test_warming_up_measures_the_smallest_slice(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"), warm_width=64, warm_height=48)
    assert runner.longest_part_s == 0.0
    runner.warm_up()
    assert runner.longest_part_s > 0.0


class Paced:
    """A VAE whose layers take so long by the clock as what they are given has pixels."""

    def __init__(
        self, runner: DiffusionRunner, clock: FakeClock, seconds_per_pixel: float, tile: int
    ) -> None:
        self.tiles: list[tuple[int, int]] = []
        self._clock, self._seconds_per_pixel = clock, seconds_per_pixel
        vae = runner.pipelines.base.vae
        vae.tile_sample_min_size, vae.tile_latent_min_size = tile, tile // 8
        vae.decoder.register_forward_pre_hook(self._see)
        vae.decoder.mid_block.register_forward_pre_hook(self._take)

    def _see(self, _module: Any, args: Any) -> None:
        height, width = args[0].shape[-2:]
        self.tiles.append((8 * height, 8 * width))

    def _take(self, _module: Any, args: Any) -> None:
        height, width = args[0].shape[-2:]
        self._clock.advance(64 * height * width * self._seconds_per_pixel)


class TestTilesOnADeviceThatCallsUse:
    def warmed(self, tiny: Tiny, seconds_per_pixel: float, **how: Any) -> tuple[Any, Paced]:
        clock = FakeClock()
        settings = DiffusionSettings(
            **{"folder": str(tiny("sd3")), "call": WORDS, "warm_width": 576, "warm_height": 384}
            | how
        )
        runner = DiffusionRunner(settings, lambda: None, clock)
        paced = Paced(runner, clock, seconds_per_pixel, settings.vae_tile or 1024)
        runner.slice_s = 0.040
        runner.warm_up()
        return runner, paced

    def test_they_are_as_large_as_their_parts_are_short_enough(self, tiny: Tiny) -> None:
        # 512 x 384 in 39 ms, 384 x 384 in 29 ms, 256 x 256 in 13 ms: a quarter of the calls'
        # period is 20 ms.
        runner, paced = self.warmed(tiny, 0.2e-6, vae_tiling=True)
        assert runner.longest_part_s == pytest.approx(0.2e-6 * 256 * 256)
        sizes = [max(each) for each in paced.tiles]
        first = [sizes.index(pixels) for pixels in (576, 512, 384, 256)]
        assert first == sorted(first), "from the largest on"
        paced.tiles.clear()
        runner.slice_s = 0.040
        Driven(runner, but(CAT, width=256, height=256)).finish()
        assert paced.tiles == [(256, 256)], "what is not larger than a tile is made as a whole"

    def test_they_stay_as_they_are_where_that_is_short_enough(self, tiny: Tiny) -> None:
        runner, paced = self.warmed(tiny, 0.01e-6, vae_tiling=True)
        assert set(paced.tiles) == {(384, 576)}
        assert runner.pipelines.base.vae.tile_sample_min_size > 576

    def test_a_size_that_is_set_is_kept(self, tiny: Tiny) -> None:
        runner, paced = self.warmed(tiny, 0.2e-6, vae_tiling=True, vae_tile=384)
        assert max(paced.tiles) == (384, 384)
        assert runner.longest_part_s == pytest.approx(0.2e-6 * 384 * 384)

    def test_without_tiles_it_is_said_what_would_help(self, tiny: Tiny) -> None:
        with pytest.raises(ConfigError, match="vae_tiling: true"):
            self.warmed(tiny, 0.2e-6)


def test_a_slice_may_be_made_shorter_and_gives_the_same_image(tiny: Tiny) -> None:
    whole, cut = runner_of(tiny("sd3"), slice_ms=60_000), runner_of(tiny("sd3"))
    cut.slice_s = 0.0
    wanted, found = Driven(whole, CAT).finish(), Driven(cut, CAT)
    assert cut.slice_shape(found.jobs) is None
    found.step()
    assert cut.slice_shape(found.jobs) == ((DrawImage, 64, 48), 1, "begins")
    found.until(lambda: len(found.of(StepsDone)) == 1)
    assert cut.slice_shape(found.jobs) == ((DrawImage, 64, 48), 1, "denoises")
    found.until(lambda: len(found.of(StepsDone)) == CAT.steps)
    assert cut.slice_shape(found.jobs) == ((DrawImage, 64, 48), 1, "ends")
    found.finish()
    assert found.steps > wanted.steps
    assert (image_of(found) == image_of(wanted)).all()


def test_what_a_request_takes_is_known_from_its_pixels(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"), job_bytes_per_pixel=100)
    asked = Driven(runner, CAT, but(CAT, width=128), TextDelta("no picture"))
    assert [runner.job_bytes(job) for job in asked.jobs] == [307_200, 614_400, 0]
    assert isinstance(runner, HoldsMemory)
    assert isinstance(runner, Sliced)
    assert runner.resident_bytes > 100_000


def test_all_that_is_done_before_there_are_jobs_is_done_in_turns(tiny: Tiny) -> None:
    settings = DiffusionSettings(
        folder=str(tiny("sd3")), call=WORDS, warm_width=64, warm_height=48, slice_ms=0.01
    )
    runner = DiffusionRunner(settings, lambda: None)
    assert isinstance(runner, LoadsInParts)
    turns, is_mine = 0, False

    @contextmanager
    def turn() -> Iterator[None]:
        nonlocal turns, is_mine
        assert not is_mine
        turns, is_mine = turns + 1, True
        yield
        is_mine = False

    def see(_module: Any, _args: Any) -> None:
        assert is_mine

    runner.turn, runner.slice_s = turn, 0.0
    for block in runner.pipelines.base.transformer.transformer_blocks:
        block.register_forward_pre_hook(see)
    runner.pipelines.base.vae.decoder.register_forward_pre_hook(see)
    runner.warm_up()
    assert turns > 20, "not all at once"
    before = turns
    runner.pipelines.move("meta", runner._device_turn)
    tensors = len(list(runner.pipelines.base.transformer.state_dict()))
    assert turns - before >= tensors


class TestProjections:
    @pytest.mark.parametrize(
        ("name", "found"),
        [
            ("sd3", {"transformer.context_embedder", "transformer.time_text_embed.text_embedder"}),
            ("flux", {"transformer.context_embedder", "transformer.time_text_embed.text_embedder"}),
            ("qwenimage", {"transformer.txt_in"}),
        ],
    )
    def test_the_same_ones_are_used_again_and_nobody_can_tell(
        self, name: str, found: set[str], tiny: Tiny
    ) -> None:
        plain = runner_of(tiny(name), guidance_field=GUIDANCE[name])
        with_cache = runner_of(
            tiny(name), guidance_field=GUIDANCE[name], projection_cache_bytes=1 << 20
        )
        cache = with_cache.pipelines.projections
        for ask in (CAT, but(CAT, seed=8), but(CAT, prompt="a dog")):
            expected = image_of(Driven(plain, ask).finish())
            assert np.array_equal(image_of(Driven(with_cache, ask).finish()), expected)
        assert cache.hits > cache.misses > 0
        assert cache.bypassed == 0
        names = {each[0] for each in cache._kept._kept}  # type: ignore[index]
        assert names == found

    def test_a_module_that_is_not_there_is_refused_with_those_that_are(self, tiny: Tiny) -> None:
        with pytest.raises(ConfigError, match=r"transformer\.context_embedder"):
            runner_of(tiny("sd3"), projection_cache_bytes=1, projections=("transformer.embedder",))


class TestSleep:
    def test_with_its_weights_on_the_host_it_wakes_and_makes_the_same(self, tiny: Tiny) -> None:
        runner = runner_of(tiny("sd3"))
        first = image_of(Driven(runner, CAT).finish())
        assert runner.pipelines.prompts.bytes
        runner.sleep(OFFLOADED)
        assert not runner.pipelines.prompts.bytes
        runner.wake()
        assert np.array_equal(image_of(Driven(runner, CAT).finish()), first)

    def test_dropped_nothing_of_it_is_left_and_another_makes_the_same(self, tiny: Tiny) -> None:
        model = WorkerModel(
            lambda wake, _announce: RunnerRegistry.installed().build(
                "diffusion", {"folder": str(tiny("sd3")), "call": WORDS}, wake
            ),
            lambda: None,
            lambda _phase: None,
            SystemClock(),
        )
        model.load()
        assert isinstance(model.runner, DiffusionRunner)
        first = image_of(Driven(model.runner, CAT).finish())
        left = weakref.ref(model.runner.pipelines.base.transformer)
        assert model.sleep(2).level == 2
        assert left() is None
        assert model.wake().level == 0
        assert np.array_equal(image_of(Driven(model.runner, CAT).finish()), first)
        model.sleep(2)
