from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from duologue.engines.runners.diffusion.projection_cache import ProjectionCache, found_projections

pytestmark = pytest.mark.torch

MIB = 2**20


class Projection(nn.Module):
    """Counts how often it computes."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 16)
        self.second = nn.Linear(16, 4)
        self.calls = 0

    def forward(self, x: Tensor, scale: float = 1.0, mask: Tensor | None = None) -> Tensor:
        self.calls += 1
        made = self.second(torch.tanh(self.linear(x))) * scale
        return made if mask is None else made * mask


class Scene:
    def __init__(self, max_bytes: int = MIB, module: Projection | None = None) -> None:
        torch.manual_seed(1)
        self.adapters: tuple[str, ...] = ()
        self.cache = ProjectionCache(max_bytes, lambda: self.adapters)
        self.module = (module or Projection()).eval()
        self.cache.attach("context", self.module)

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.cache.hits, self.cache.misses, self.cache.bypassed


@pytest.fixture(autouse=True)
def no_grad() -> object:
    with torch.no_grad():
        yield


def x(seed: int = 1) -> Tensor:
    return torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(seed))


def test_the_same_content_is_computed_once_and_is_equal_to_the_last_bit() -> None:
    scene = Scene()
    first, again = scene.module(x()), scene.module(x())
    assert scene.module.calls == 1
    assert torch.equal(again, first)
    assert torch.equal(Projection.forward(scene.module, x()), first)
    assert scene.counts == (1, 1, 0)
    assert scene.cache.kept_bytes == first.nbytes


@pytest.mark.parametrize(
    "other",
    [
        lambda: x(2),
        lambda: x().nextafter(torch.full((), torch.inf)),
        lambda: x()[:1],
        lambda: x().double(),
        lambda: x().transpose(0, 1).contiguous().transpose(0, 1),
        lambda: x().reshape(5, 2, 8),
        lambda: torch.where(x() > 9, x(), -0.0),
    ],
    ids=["content", "one bit", "shape", "type", "strides", "view", "sign of zero"],
)
def test_whatever_differs_is_computed(other: Callable[[], Tensor]) -> None:
    scene = Scene()
    scene.module(x())
    scene.module(torch.where(x() > 9, x(), 0.0))
    given = other()
    if given.dtype is torch.float64:
        scene.module.double()
    scene.module(given)
    assert scene.module.calls == 3
    assert scene.cache.hits == 0


def test_all_arguments_count_by_place_and_by_name() -> None:
    scene = Scene()
    mask = torch.ones(2, 5, 1)
    for call in (
        lambda: scene.module(x()),
        lambda: scene.module(x(), 2.0),
        lambda: scene.module(x(), scale=2.0),
        lambda: scene.module(x(), scale=2),
        lambda: scene.module(x(), mask=mask),
        lambda: scene.module(x(), mask=torch.zeros(2, 5, 1)),
    ):
        before = scene.module.calls
        assert torch.equal(call(), call())
        assert scene.module.calls == before + 1


@pytest.mark.parametrize("how", ["in place", "loaded", "another", "moved"])
def test_weights_that_changed_are_used(how: str) -> None:
    scene = Scene()
    before = scene.module(x())
    linear = scene.module.linear
    match how:
        case "in place":
            linear.weight.mul_(2)
        case "loaded":
            linear.load_state_dict({key: value * 2 for key, value in linear.state_dict().items()})
        case "another":
            linear.weight = nn.Parameter(linear.weight * 2)
        case "moved":
            linear.weight.data = linear.weight.data * 2
    after = scene.module(x())
    assert not torch.equal(after, before)
    assert torch.equal(after, Projection.forward(scene.module, x()))
    assert scene.cache.hits == 0


def test_adapters_are_part_of_the_key_and_a_return_to_one_finds_its_results() -> None:
    scene = Scene()
    for adapters in ((), ("style", 0.5), ()):
        scene.adapters = adapters
        scene.module(x())
    assert scene.counts == (1, 2, 0)


def test_what_was_changed_behind_torchs_back_is_forgotten_when_told() -> None:
    scene = Scene()
    scene.module(x())
    scene.cache.clear()
    scene.module(x())
    assert (scene.counts, scene.module.calls) == ((0, 2, 0), 2)


def test_a_tensor_that_is_the_same_object_is_hashed_once_until_somebody_writes_into_it() -> None:
    scene = Scene()
    given = x()
    scene.module(given)
    (known,) = scene.cache._digests.values()
    scene.module(given)
    assert next(iter(scene.cache._digests.values())) is known
    given[0, 0, 0] += 1
    written = scene.module(given)
    assert torch.equal(written, Projection.forward(scene.module, given))
    assert scene.counts == (1, 2, 0)
    del given, known
    gc.collect()
    assert scene.cache._digests == {}


def test_a_result_that_somebody_wrote_into_is_computed_again() -> None:
    scene = Scene()
    scene.module(x()).add_(1)
    assert torch.equal(scene.module(x()), Projection.forward(scene.module, x()))
    assert scene.module.calls == 3


def test_the_newest_results_are_kept_within_the_bound() -> None:
    one = Scene().module(x()).nbytes
    scene = Scene(max_bytes=2 * one)
    for seed in (1, 2, 1, 3, 1, 2):
        scene.module(x(seed))
    assert scene.cache.kept_bytes == 2 * one
    assert scene.counts == (2, 4, 0)
    none = Scene(max_bytes=one - 1)
    none.module(x())
    none.module(x())
    assert (none.cache.kept_bytes, none.module.calls) == (0, 2)


class Strange:
    """Nobody knows whether two of these are the same."""

    def __rmul__(self, other: Tensor) -> Tensor:
        return other


@pytest.mark.parametrize("why", ["training", "grad", "inference", "hook inside", "argument"])
def test_where_it_cannot_be_known_the_module_computes(why: str) -> None:
    scene = Scene()
    given, scale = x(), 1.0
    match why:
        case "training":
            scene.module.train()
        case "inference":
            with torch.inference_mode():
                given = x()
        case "hook inside":
            scene.module.linear.register_forward_hook(lambda *_: None)
        case "argument":
            scale = Strange()  # type: ignore[assignment]
    with torch.set_grad_enabled(why == "grad"):
        scene.module(given, scale)
        scene.module(given, scale)
    assert scene.counts == (0, 0, 2)


def test_how_torch_computes_is_part_of_the_key() -> None:
    scene = Scene()
    plain = scene.module(x())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert scene.module(x()).dtype is torch.bfloat16
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        scene.module(x())
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(scene.module(x()), plain)
    assert scene.counts == (1, 3, 0)


def test_two_modules_do_not_share_results() -> None:
    scene, other = Scene(), Projection().eval()
    scene.cache.attach("other", other)
    assert not torch.equal(scene.module(x()), other(x()))


def test_hooks_of_the_module_itself_run_each_time() -> None:
    scene = Scene()
    seen: list[Tensor] = []
    scene.module.register_forward_hook(lambda _module, _args, made: seen.append(made))
    scene.module(x())
    scene.module(x())
    assert (len(seen), scene.module.calls) == (2, 1)


def test_projections_are_found_by_what_they_are_called_and_what_they_are() -> None:
    class PixArtAlphaTextProjection(nn.Linear):
        pass

    model = nn.ModuleDict(
        {
            "context_embedder": nn.Linear(4, 4),
            "proj_out": nn.Linear(4, 4),
            "time_text_embed": nn.ModuleDict(
                {
                    "text_embedder": PixArtAlphaTextProjection(4, 4),
                    "timestep_embedder": nn.Linear(4, 4),
                }
            ),
            "txt_in": nn.Sequential(nn.Linear(4, 4)),
        }
    )
    names = [name for name, _ in found_projections(model)]
    assert names == ["context_embedder", "time_text_embed.text_embedder"]
