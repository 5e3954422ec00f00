from __future__ import annotations

from pathlib import Path

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.runners.speech.text_tokens import load_tokenizer
from tests.fakes.tiny_speech.tokenizers import byte_tokenizer, save

pytestmark = pytest.mark.speech


def test_what_belongs_around_a_text_comes_with_it(tmp_path: Path) -> None:
    save(byte_tokenizer(("<s>", "</s>"), ("<s>", "</s>")), tmp_path)
    ids = load_tokenizer(tmp_path).encode("hi").ids
    assert (ids[0], ids[-1], len(ids)) == (0, 1, 4)


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)
