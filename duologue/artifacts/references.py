"""References to weights inside settings, which become paths.

``artifact:ID`` is one that this version knows, pinned by hash. ``folder:NAME/FILE`` lies below one
of the local folders of the settings, and nothing is known of its bytes: whoever put it there
answers for them. This module must not know what the settings are for.
"""

from __future__ import annotations

from typing import Any

from duologue.artifacts.store import Store

PREFIX = "artifact:"
FOLDER_PREFIX = "folder:"


def references_in(value: Any) -> set[str]:
    """Return the ids of all artifacts that ``value`` refers to, at any depth."""
    if isinstance(value, str):
        return {value.removeprefix(PREFIX)} if value.startswith(PREFIX) else set()
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {found for item in below for found in references_in(item)}


def resolve_references(value: Any, store: Store) -> Any:
    """Return ``value`` with every reference in it replaced by a path, at any depth.

    Raises:
        ArtifactMissing: An artifact is not in the cache, or a file in no folder; the message says
            how to get it.
        ConfigError: There is no such artifact.
    """
    if isinstance(value, str) and value.startswith(PREFIX):
        return str(store.path(value.removeprefix(PREFIX)))
    if isinstance(value, str) and value.startswith(FOLDER_PREFIX):
        return str(store.local(value.removeprefix(FOLDER_PREFIX)))
    if isinstance(value, dict):
        return {key: resolve_references(item, store) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve_references(item, store) for item in value]
    return value
