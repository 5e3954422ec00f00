"""Reads pipeline files: what they extend, merged, and where each value stands.

``extends`` names another file, relative to its own folder, or a pipeline that ships. Mappings are
merged key by key; lists whose entries have names, as ``stages``, entry by entry; anything else
replaces what was there. This module must not know what a pipeline consists of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from duologue.config.yaml_text import read_nodes
from duologue.core.errors import ConfigError

MAX_DEPTH = 8
"""How many files may extend each other."""

Tree: TypeAlias = dict[str, Any]
Origins: TypeAlias = dict[str, str]
"""Dotted key -> ``file:line``. Entries of a list with names stand under these."""


@dataclass(frozen=True)
class Source:
    """A pipeline as its files give it, not yet checked.

    Args:
        path: The file that was asked for.
    """

    path: Path
    tree: Tree
    origins: Origins = field(default_factory=dict)


def read_source(path: Path, shipped: Path) -> Source:
    """Read a file and what it extends.

    Args:
        shipped: The folder of pipelines that others may extend by name.

    Raises:
        ConfigError: A file is missing or no mapping, or files extend each other in a circle.
    """
    return _read(path, shipped, ())


def merged(base: Any, over: Any) -> Any:
    """Return ``base`` with all that ``over`` says."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        result = dict(base)
        for key, value in over.items():
            result[key] = merged(base[key], value) if key in base else value
        return result
    if _has_names(base) and _has_names(over):
        by_name = {entry["name"]: entry for entry in base}
        for entry in over:
            name = entry["name"]
            by_name[name] = merged(by_name[name], entry) if name in by_name else entry
        return list(by_name.values())
    return over


def _read(path: Path, shipped: Path, below: tuple[Path, ...]) -> Source:
    resolved = path.resolve()
    if resolved in below:
        circle = " -> ".join(each.name for each in (*below, resolved))
        raise ConfigError(f"pipeline {path}: extends in a circle: {circle}")
    if len(below) >= MAX_DEPTH:
        raise ConfigError(f"pipeline {path}: more than {MAX_DEPTH} files extend each other")
    own = _load(path, shipped)
    base_name = own.tree.pop("extends", None)
    if base_name is None:
        return own
    if not isinstance(base_name, str):
        raise ConfigError(f"pipeline {path}: extends must be the name of a file or a pipeline")
    base = _read(_base_path(path, base_name, shipped), shipped, (*below, resolved))
    return Source(path, merged(base.tree, own.tree), {**base.origins, **own.origins})


def _base_path(path: Path, name: str, shipped: Path) -> Path:
    if name.endswith((".yaml", ".yml")):
        return path.parent / name
    return shipped / f"{name}.yaml"


def _load(path: Path, shipped: Path) -> Source:
    try:
        text = path.read_text(encoding="utf-8")
        node, tree = read_nodes(text)
    except FileNotFoundError as exc:
        if path.parent == shipped:
            names = ", ".join(sorted(each.stem for each in shipped.glob("*.yaml")))
            raise ConfigError(
                f"engine.pipelines: there is no pipeline {path.stem!r}; there are {names}. "
                "One of your own goes into engine.pipeline_files"
            ) from exc
        raise ConfigError(f"engine.pipeline_files: there is no file {path}") from exc
    except OSError as exc:
        raise ConfigError(f"cannot read the pipeline {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"pipeline {path} is not UTF-8 text") from exc
    except yaml.YAMLError as exc:
        raise ConfigError(f"pipeline {path}: {exc}") from exc
    if not isinstance(tree, dict) or node is None:
        raise ConfigError(f"pipeline {path}: a pipeline is a mapping with a name and stages")
    origins: Origins = {}
    _note(node, "", str(path), origins)
    return Source(path, tree, origins)


def _note(node: yaml.Node, prefix: str, where: str, origins: Origins) -> None:
    """Note the line of every value below a node."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            _note(value, f"{prefix}.{key.value}" if prefix else key.value, where, origins)
    elif isinstance(node, yaml.SequenceNode) and (names := _node_names(node)):
        for name, value in zip(names, node.value, strict=True):
            _note(value, f"{prefix}.{name}", where, origins)
    elif prefix:
        origins[prefix] = f"{where}:{node.start_mark.line + 1}"


def _node_names(node: yaml.SequenceNode) -> list[str]:
    names = []
    for entry in node.value:
        if not isinstance(entry, yaml.MappingNode):
            return []
        named = [value.value for key, value in entry.value if key.value == "name"]
        if not named:
            return []
        names.append(str(named[0]))
    return names


def _has_names(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, Mapping) and isinstance(entry.get("name"), str) for entry in value
    )
