from __future__ import annotations

from pathlib import Path

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.models.moshi_lm.config import MoshiConfig, tiny
from duologue.engines.models.moshi_lm.random_checkpoint import train_vocabulary
from duologue.engines.models.moshi_lm.tokenizer import TextTokenizer

pytestmark = pytest.mark.torch

CONFIG = tiny(text_card=300)
SENTENCES = ["the quick brown fox jumps over the lazy dog", "the dog and the fox talk"]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vocabulary") / "tokenizer.model"
    train_vocabulary(path, CONFIG, SENTENCES)
    return path


def read(tokenizer: TextTokenizer, tokens: list[int]) -> list[str]:
    stream = tokenizer.stream()
    return [stream.read(token) for token in tokens]


@pytest.mark.parametrize("text", ["the dog and the fox", "the fox é 狐 🦊 dog"])
def test_what_is_encoded_reads_as_it_was_with_a_space_before(vocabulary: Path, text: str) -> None:
    tokenizer = TextTokenizer(vocabulary, CONFIG)
    assert "".join(read(tokenizer, tokenizer.encode(text))) == f" {text}"


def test_frames_without_a_word_say_nothing(vocabulary: Path) -> None:
    tokenizer = TextTokenizer(vocabulary, CONFIG)
    assert read(tokenizer, [0, 3, 1, 2]) == [""] * 4


def test_letters_in_bytes_wait_until_they_are_whole(vocabulary: Path) -> None:
    tokenizer = TextTokenizer(vocabulary, CONFIG)
    fox = [4 + byte for byte in "狐".encode()]  # the bytes follow the four special tokens
    assert read(tokenizer, fox) == ["", "", "狐"]
    with_pause = [fox[0], 3, fox[1], fox[2]]
    assert read(tokenizer, with_pause) == ["", "", "", "狐"]


def test_bytes_that_are_no_letter_are_shown_as_such_and_hold_nothing_up(vocabulary: Path) -> None:
    tokenizer = TextTokenizer(vocabulary, CONFIG)
    word = tokenizer.encode("the")
    assert "".join(read(tokenizer, [4 + 0xE7, *word])) == "\ufffd the"
    assert "".join(read(tokenizer, [4 + 0xE7] * 4)) == "\ufffd" * 4


def test_a_vocabulary_of_another_size_or_none_is_refused(
    tmp_path: Path, vocabulary: Path, config: MoshiConfig
) -> None:
    with pytest.raises(ConfigError, match="has 300 tokens, the model 40"):
        TextTokenizer(vocabulary, config)
    broken = tmp_path / "broken.model"
    broken.write_bytes(b"none")
    for path in (broken, tmp_path / "missing.model"):
        with pytest.raises(ConfigError, match="cannot read the tokenizer"):
            TextTokenizer(path, CONFIG)
