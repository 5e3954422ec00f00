"""The base of every settings class. It must not know which sections exist."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A frozen group of settings that lives beside the code that reads it.

    Every field has a default, a unit in its name where it has one (``_s``, ``_ms``, ``_bytes``),
    its bounds in its type, and a docstring line below it, which ``--help`` shows. Unknown keys are
    refused. A path that stands in a file is relative to that file.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True
    )

    also_reads: ClassVar[frozenset[str]] = frozenset()
    """Further ``DUOLOGUE_`` variables that defaults of this section read: no misspellings."""
