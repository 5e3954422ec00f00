from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError
from duologue.duplex_plugins.omni.plugin import create
from duologue.duplex_plugins.omni.settings import OmniSettings


def test_the_defaults_are_those_of_the_shipped_pipeline() -> None:
    settings = OmniSettings()
    assert settings.pipeline == "qwen3_omni_chat"
    assert settings.voices[0] == "ethan"


@pytest.mark.parametrize("options", [{"voices": []}, {"recordings_s": 0}, {"asr": "x"}])
def test_what_it_does_not_know_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="plugin omni"):
        create(options)
