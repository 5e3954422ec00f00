from __future__ import annotations

from pathlib import Path

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.runners.asr.whisper_model import load_whisper


def test_a_folder_that_lacks_files_refuses_to_start(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"lacks model\.bin, tokenizer\.json.*models pull"):
        load_whisper(str(tmp_path), language="en", threads=1, compute_type="int8")
