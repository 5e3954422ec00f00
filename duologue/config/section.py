"""The base of every settings class. It must not know which sections exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator


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

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_slips(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse what pydantic takes and nobody means: ``port: yes`` would be port 1."""
        types = _types_in(cls.model_fields[info.field_name or ""].annotation)
        if any(isinstance(each, type) and issubclass(each, Section) for each in types):
            return value  # which looks at its own, and says where
        takes_no_bool = bool not in types and bool(types & {int, float})
        for each in _values_in(value):
            if takes_no_bool and isinstance(each, bool):
                raise ValueError("input should be a number, not yes or no")
            if isinstance(each, str) and "\0" in each:
                raise ValueError("input holds a NUL character")
        return value


def _types_in(annotation: Any) -> set[Any]:
    """Return the types that an annotation is made of, as int and None of ``int | None``."""
    parts = get_args(annotation)
    return set().union(*map(_types_in, parts)) if parts else {annotation}


def _values_in(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else [value]
