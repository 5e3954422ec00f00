from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.output_types import ALLOWED, OutputType, parse_output_types


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        (None, (OutputType.TEXT,)),
        ("image", (OutputType.IMAGE,)),
        ("text+audio", (OutputType.TEXT, OutputType.AUDIO)),
        ("text,audio", (OutputType.TEXT, OutputType.AUDIO)),
        (("latent", "token_ids"), (OutputType.LATENT, OutputType.TOKEN_IDS)),
    ],
)
def test_names_and_combinations(given: str | None, kinds: tuple[OutputType, ...]) -> None:
    assert parse_output_types(given) == kinds


@pytest.mark.parametrize(
    "given", ["", "Text", "speech", "images", "text audio", "text+", "text + audio", ("wav",), ()]
)
def test_anything_else_is_refused_with_the_allowed_names(given: str) -> None:
    with pytest.raises(ConfigError, match=ALLOWED):
        parse_output_types(given)


def test_one_that_stands_there_twice_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="twice"):
        parse_output_types("text+text")
