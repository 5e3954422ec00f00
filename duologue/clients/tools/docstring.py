"""What a docstring says about a function and about each of its arguments.

Google's form is understood; of any other form, all of it is the description. This module must not
know schemas.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

_SECTION = re.compile(r"[A-Z][A-Za-z ]*:\s*\Z")
_ARGUMENTS = ("Args:", "Arguments:", "Parameters:")
_ARGUMENT = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<said>.*)\Z")


@dataclass(frozen=True, slots=True)
class Docstring:
    """What was found.

    Args:
        summary: All that stands before the first section.
        arguments: What is said of each, by name.
    """

    summary: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring; of a function that has none, nothing."""
    lines = inspect.cleandoc(text or "").splitlines()
    heads = [number for number, line in enumerate(lines) if _is_section(line)]
    summary = lines[: heads[0]] if heads else lines
    arguments: dict[str, str] = {}
    for start, end in pairwise([*heads, len(lines)]):
        if lines[start].strip() in _ARGUMENTS:
            arguments |= _arguments(lines[start + 1 : end])
    return Docstring(_flowed(summary), arguments)


def _is_section(line: str) -> bool:
    return _SECTION.match(line) is not None


def _arguments(lines: list[str]) -> dict[str, str]:
    """Read entries; what is indented deeper than they are goes on with the last one."""
    found: dict[str, list[str]] = {}
    name, depth = "", 0
    for line in filter(str.strip, lines):
        indent = len(line) - len(line.lstrip())
        entry = _ARGUMENT.match(line.strip()) if not name or indent <= depth else None
        if entry is not None:
            name, depth = entry["name"], indent
            found[name] = [entry["said"]]
        elif name:
            found[name].append(line)
    return {name: _flowed(said) for name, said in found.items()}


def _flowed(lines: list[str]) -> str:
    """Join the lines of each paragraph."""
    paragraphs = "\n".join(line.strip() for line in lines).strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
