from __future__ import annotations

from pathlib import Path

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.runners.asr.whisper_model import _max_length, load_whisper


def test_a_folder_that_lacks_files_refuses_to_start(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"lacks model\.bin, tokenizer\.json.*models pull"):
        load_whisper(str(tmp_path), language="en", threads=1, compute_type="int8")


@pytest.mark.parametrize("prompt_tokens", [2, 203])
@pytest.mark.parametrize(("speech_s", "for_file", "tokens"), [(1, False, 13), (14, True, 147)])
def test_the_limit_of_an_answer_leaves_room_for_the_prompt(
    speech_s: float, prompt_tokens: int, for_file: bool, tokens: int
) -> None:
    limit = _max_length(speech_s, prompt_tokens, for_file=for_file)

    assert min(limit // 2, limit - prompt_tokens) == tokens


def test_an_answer_and_its_prompt_fit_the_model() -> None:
    assert _max_length(30, 203, for_file=True) <= 448
