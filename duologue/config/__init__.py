"""Settings: declared in sections, read once at start from four places, passed down whole."""

from duologue.config.load import (
    Loaded,
    Origin,
    OriginKind,
    add_options,
    load,
    load_from_args,
    parse_section,
)
from duologue.config.section import Section

__all__ = [
    "Loaded",
    "Origin",
    "OriginKind",
    "Section",
    "add_options",
    "load",
    "load_from_args",
    "parse_section",
]
