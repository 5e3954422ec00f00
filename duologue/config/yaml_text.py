"""Reads YAML with the parser in C, where PyYAML was built with it: ten times as fast.

A server reads its manifest and its pipelines at each start.
"""

from __future__ import annotations

from typing import Any

import yaml

_LOADER: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)


def read_nodes(text: str) -> tuple[yaml.Node | None, Any]:
    """Return the nodes of a document, which know their lines, and its values; parsed once.

    Raises:
        yaml.YAMLError: It is not YAML, or asks for what is no plain value.
    """
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        return node, None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()
