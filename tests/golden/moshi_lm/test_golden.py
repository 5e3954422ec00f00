"""The same weights and frames gave the references these tokens (see ``README.md``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from duologue.engines.models.moshi_lm.config import tiny
from duologue.engines.models.moshi_lm.prompt import personaplex_prompt
from tests.golden.moshi_lm import seeded_weights
from tests.golden.moshi_lm.stepping import says

pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parent


def read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text())


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def personaplex(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recorded = read("personaplex/tensors.json")
    path = tmp_path_factory.mktemp("personaplex") / "model.safetensors"
    tensors = seeded_weights.make((name, tuple(shape)) for name, shape in recorded["tensors"])
    seeded_weights.write(path, tensors, recorded["sha256_of_bytes_in_order"])
    return path


def test_moshi_says_what_its_reference_says_also_past_the_window(tmp_path: Path) -> None:
    golden = read("moshi.json")
    path = tmp_path / "model.safetensors"
    tensors = seeded_weights.make((name, tuple(shape)) for name, shape in golden["tensors"])
    seeded_weights.write(path, tensors, golden["sha256_of_bytes_in_order"])
    config = tiny(window=golden["window"])
    assert len(golden["expected"]) > 2 * golden["window"]
    assert says(path, config, golden["user_codes"]) == golden["expected"]


@pytest.mark.parametrize("context", [200, 48])
def test_personaplex_says_a_frame_earlier_what_its_reference_says(
    personaplex: Path, context: int
) -> None:
    golden = read(f"personaplex/expected_context_{context}.json")
    # Its ring hides the oldest cell once it has wrapped.
    config = tiny(window=context - 1)
    prompt = personaplex_prompt(
        config, golden["text_prompt_tokens"], silent_frames=golden["silence_frames"]
    )
    said = says(personaplex, config, golden["user_codes"], prompt)
    assert said[:-1] == golden["expected"][1:]
