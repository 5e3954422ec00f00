from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from duologue.codecs.mimi import save_random
from duologue.codecs.mimi.checkpoint import load_tensors
from duologue.codecs.mimi.layout import checkpoint_shapes
from duologue.core.errors import ConfigError
from tests.golden.mimi.sizes import TINY

pytestmark = pytest.mark.torch

USAGE = "quantizer.rvq_first.vq.layers.0._codebook.cluster_usage"


def test_a_random_checkpoint_is_a_whole_one_and_depends_on_its_seed_alone(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        save_random(tmp_path / name, TINY, seed)
    a, b, c = (load_file(tmp_path / name) for name in "abc")
    assert {name: tuple(each.shape) for name, each in a.items()} == checkpoint_shapes(TINY)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a[USAGE], c[USAGE])


def test_codebooks_that_are_not_used_are_not_read(checkpoint: Path) -> None:
    books = [name for name in load_tensors(checkpoint, TINY) if name.endswith("embedding_sum")]
    assert len(books) == TINY.codebooks
    more = load_tensors(checkpoint, replace(TINY, codebooks=TINY.stored_codebooks))
    assert sum(name.endswith("embedding_sum") for name in more) == TINY.stored_codebooks


Change = Callable[[dict[str, torch.Tensor]], object]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop(USAGE), f"{USAGE} is missing"),
        (lambda tensors: tensors.update(extra=torch.ones(1)), "extra is unknown"),
        (lambda tensors: tensors.update({USAGE: torch.ones(31)}), r"is \[31\], must be \[32\]"),
        (
            lambda tensors: tensors.update({USAGE: torch.ones(32, dtype=torch.int8)}),
            "is of type I8, must be one of",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_name(
    checkpoint: Path, tmp_path: Path, change: Change, message: str
) -> None:
    tensors = load_file(checkpoint)
    change(tensors)
    save_file(tensors, tmp_path / "wrong.safetensors")
    with pytest.raises(ConfigError, match=message):
        load_tensors(tmp_path / "wrong.safetensors", TINY)


def test_of_many_problems_a_few_are_named_and_all_are_counted(checkpoint: Path) -> None:
    with pytest.raises(ConfigError, match=r"and [0-9]+ more.*set the sizes") as caught:
        load_tensors(checkpoint, replace(TINY, dimension=32))
    assert int(str(caught.value.details["problems"])) > 10


@pytest.mark.parametrize("content", [None, b"", b"\x10\0\0\0\0\0\0\0not a header"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot read the Mimi checkpoint"):
        load_tensors(path, TINY)
