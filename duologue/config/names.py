"""The settings that a root class declares, each with its names. Reads no values."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretBytes, SecretStr

ENV_PREFIX = "DUOLOGUE_"
ENV_DELIMITER = "__"


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that can be set.

    Args:
        key: Its dotted name, as in ``--gateway.port``.
        is_open: Further names below ``key`` are free: a mapping, or a choice between classes.
        holds_path: A relative path in a file is relative to that file.
        is_secret: Its value is never printed.
    """

    key: str
    is_open: bool
    holds_path: bool
    is_secret: bool


def settings_of(root: type[BaseModel]) -> dict[str, Setting]:
    """All settings under ``root``, by dotted key, in the order of their declaration."""
    return {setting.key: setting for setting in _walk(root, "")}


def section_keys(settings: Iterable[str]) -> set[str]:
    """The dotted keys of all sections that lie above ``settings``."""
    return {
        ".".join(parts[:depth])
        for parts in (key.split(".") for key in settings)
        for depth in range(1, len(parts))
    }


def variables_also_read(root: type[BaseModel]) -> set[str]:
    """The variables beside the settings' own that sections say they read."""
    found = set(getattr(root, "also_reads", ()))
    for field in root.model_fields.values():
        for member in _members(field.annotation):
            if _is_section(member):
                found |= variables_also_read(member)
    return found


def env_name(key: str) -> str:
    """The environment variable that sets a dotted key."""
    return ENV_PREFIX + key.replace(".", ENV_DELIMITER).upper()


def unknown_env_names(
    environ: Mapping[str, str], settings: Mapping[str, Setting], also_known: Iterable[str]
) -> list[str]:
    """Complaints about variables that begin like ours and set nothing.

    pydantic-settings passes over a misspelt section in silence, so a typing error would leave a
    default in place that the operator believes to have changed.
    """
    known = {env_name(key) for key in settings} | set(also_known)
    sections = {env_name(key) for key in section_keys(settings)}
    open_prefixes = tuple(
        env_name(setting.key) + ENV_DELIMITER for setting in settings.values() if setting.is_open
    )
    complaints = []
    for name in sorted(environ):
        upper = name.upper()
        if not upper.startswith(ENV_PREFIX) or upper in known or upper in sections:
            continue
        if open_prefixes and upper.startswith(open_prefixes):
            continue
        complaints.append(f"{name} (environment) is not a setting{did_you_mean(upper, known)}")
    return complaints


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` ; did you mean X?`` with the nearest known name, or nothing."""
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _walk(section: type[BaseModel], prefix: str) -> Iterator[Setting]:
    for name, field in section.model_fields.items():
        key = prefix + name
        members = list(_members(field.annotation))
        if len(members) == 1 and _is_section(members[0]):
            yield from _walk(members[0], key + ".")
            continue
        types = [leaf for member in members for leaf in _leaves(member)]
        yield Setting(
            key=key,
            is_open=any(_is_section(m) or (get_origin(m) or m) is dict for m in members),
            holds_path=any(isinstance(t, type) and issubclass(t, Path) for t in types),
            is_secret=any(_holds_secret(t) for t in types),
        )


def _members(annotation: Any) -> Iterator[Any]:
    """The alternatives of a union, without None."""
    if get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    elif annotation is not NoneType:
        yield annotation


def _leaves(annotation: Any) -> Iterator[Any]:
    """The types inside containers: ``dict[str, Path]`` holds str and Path."""
    inner = get_args(annotation)
    if not inner:
        yield annotation
    for member in inner:
        yield from _leaves(member)


def _holds_secret(leaf: Any) -> bool:
    """Whether a value of this type is a secret, or a section with one in it."""
    if _is_section(leaf):
        return any(setting.is_secret for setting in _walk(leaf, ""))
    return leaf in (SecretStr, SecretBytes)


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
