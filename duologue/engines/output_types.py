"""What a pipeline gives out, by the names that engines of today use.

This module must not know which pipeline gives what.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from duologue.core.errors import ConfigError


class OutputType(Enum):
    """One kind of output. A video is pictures, one after another: ``image``."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    LATENT = "latent"
    TOKEN_IDS = "token_ids"


ALLOWED = ", ".join(each.value for each in OutputType)


def parse_output_types(given: str | Sequence[str] | None) -> tuple[OutputType, ...]:
    """Read the names of output types: one, several in a list, or joined by ``+`` or a comma.

    Exactly these names count: another case or another word for the same is refused, so that one
    spelling means one thing in all pipelines.

    Returns:
        In the order in which they were given; nothing given is text.

    Raises:
        ConfigError: A name is unknown, empty or there twice; the message has the allowed ones.
    """
    if given is None:
        return (OutputType.TEXT,)
    names = given.replace("+", ",").split(",") if isinstance(given, str) else list(given)
    found: list[OutputType] = []
    for name in names:
        try:
            kind = OutputType(name)
        except ValueError:
            raise ConfigError(
                f"no output type is called {name!r}; there are {ALLOWED}, "
                "and combinations such as text+audio"
            ) from None
        if kind in found:
            raise ConfigError(f"the output type {name} stands there twice")
        found.append(kind)
    if not found:
        raise ConfigError(f"outputs is empty; there are {ALLOWED}")
    return tuple(found)
