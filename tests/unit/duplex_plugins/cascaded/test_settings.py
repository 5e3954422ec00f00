from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError
from duologue.duplex_plugins.cascaded.plugin import create
from duologue.duplex_plugins.cascaded.settings import CascadedSettings


def test_the_defaults_are_those_of_the_local_models() -> None:
    settings = CascadedSettings()
    assert (settings.llm_pipeline, settings.tts_pipeline) == ("llm", "tts")
    assert settings.temperature == 0
    assert settings.examples


def test_examples_and_clauses_come_from_the_configuration() -> None:
    plugin = create(
        {
            "examples": [{"user": "Hi.", "assistant": "Hello!"}],
            "clauses": {"first_pause_words": 3},
            "voices": ["eve", "bob"],
        }
    )
    assert plugin.capabilities().voices == ("eve", "bob")


@pytest.mark.parametrize(
    "options",
    [{"voices": []}, {"temperature": 3}, {"clauses": {"most_words": 0}}, {"model": "big"}],
)
def test_what_cannot_be_is_refused_with_its_name(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        create(options)
