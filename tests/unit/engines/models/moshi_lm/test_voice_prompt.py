from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from duologue.core.errors import ConfigError
from duologue.engines.models.moshi_lm import temporal
from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.prompt import Prompt, personaplex_prompt
from duologue.engines.models.moshi_lm.random_checkpoint import save_random_voice
from duologue.engines.models.moshi_lm.token_grid import Frame, first_frame, row, rows
from duologue.engines.models.moshi_lm.voice_prompt import RING, load_voice
from duologue.engines.models.moshi_lm.weights import MoshiWeights
from tests.golden.moshi_lm.stepping import Stepper

pytestmark = pytest.mark.torch

PERSONA = [5, 9, 12]


@pytest.mark.parametrize("frames", [2, 3, 4, 5, 9])
def test_a_voice_ready_made_equals_its_frames(
    tmp_path: Path, weights: MoshiWeights, config: MoshiConfig, frames: int
) -> None:
    """Written as the reference writes it: sums of embeddings, and the ring after the last frame."""
    generator = torch.Generator().manual_seed(1)
    codes = torch.randint(config.audio_card, (frames, config.codebooks), generator=generator)
    spoken = [Frame(3, tuple(each), config.sine) for each in codes.tolist()]
    spoken[0] = first_frame(config)  # never seen
    made = rows(config, spoken, spoken[0])
    cache = torch.zeros((1, config.streams, RING), dtype=torch.long)
    for position, each in enumerate(made):
        cache[0, :, position % RING] = torch.tensor(each)
    cache[0, :, frames % RING] = torch.tensor(row(config, first_frame(config), spoken[-1]))
    embeddings = temporal.embed(weights, torch.tensor(made[:-1], dtype=torch.int32))
    path = tmp_path / "voice.pt"
    torch.save({"embeddings": embeddings[:, None, None], "cache": cache}, path)

    voice = load_voice(path, config)
    prompt = personaplex_prompt(config, PERSONA, voice.end)
    whole = Prompt(made[:-1] + prompt.rows, prompt.last)
    heard = config.silence

    def says(prompt: Prompt, embeddings: torch.Tensor | None) -> list[list[int]]:
        stepper = Stepper(weights, config)
        grid = stepper.begin(prompt, voice=embeddings)
        return [stepper.step({0: grid}, {0: heard})[0] for _ in range(10)]

    assert prompt.rows[0] == made[-1]
    assert says(prompt, voice.embeddings) == says(whole, None)


def test_a_file_that_would_run_code_is_refused(tmp_path: Path, config: MoshiConfig) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    path = tmp_path / "voice.pt"
    torch.save({"embeddings": Bomb(), "cache": Bomb()}, path)
    with pytest.raises(ConfigError, match="nothing but tensors"):
        load_voice(path, config)
    path.write_bytes(pickle.dumps(Bomb(), protocol=2))
    with pytest.raises(ConfigError, match="cannot read the voice"):
        load_voice(path, config)
    assert not (tmp_path / "ran").exists()


def test_a_file_cut_short_is_refused(tmp_path: Path, config: MoshiConfig) -> None:
    path = tmp_path / "voice.pt"
    save_random_voice(path, config, frames=3, seed=1)
    path.write_bytes(path.read_bytes()[:-100])
    for each in (path, tmp_path / "missing.pt"):
        with pytest.raises(ConfigError, match="cannot read the voice"):
            load_voice(each, config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cache": None}, "must hold the tensors"),
        ({"embeddings": torch.zeros(2, 1, 1, 65)}, r"embeddings is \[2, 1, 1, 65\]"),
        ({"embeddings": torch.zeros(0, 1, 1, 64)}, r"embeddings is \[0, 1, 1, 64\]"),
        ({"cache": torch.zeros((1, 9, 3), dtype=torch.long)}, r"cache is \[1, 9, 3\]"),
        ({"cache": torch.zeros(1, 9, 4)}, "of integers"),
        ({"cache": torch.full((1, 9, 4), -2)}, "text token -2 is not within 0 to 40"),
        ({"cache": torch.full((1, 9, 4), 31)}, "code 31 is not within 0 to 30"),
    ],
)
def test_a_voice_of_another_model_is_refused(
    tmp_path: Path, config: MoshiConfig, change: dict[str, torch.Tensor | None], message: str
) -> None:
    path = tmp_path / "voice.pt"
    save_random_voice(path, config, frames=3, seed=1)
    torch.save(torch.load(path, weights_only=True) | change, path)
    with pytest.raises(ConfigError, match=message):
        load_voice(path, config)


def test_a_file_of_something_else_is_refused(tmp_path: Path, config: MoshiConfig) -> None:
    path = tmp_path / "voice.pt"
    torch.save([1, 2], path)
    with pytest.raises(ConfigError, match="must hold the tensors"):
        load_voice(path, config)
