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
        yaml.YAMLError: It is not YAML, asks for what is no plain value, or holds itself.
    """
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, None
        if "&" in text:
            _refuse_loops(node, [], set())
        return node, loader.construct_document(node)
    except (ValueError, AttributeError) as exc:  # of ``!!int x``, and of a 13th month
        raise yaml.YAMLError(f"a value is not of its type: {exc}") from exc
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    finally:
        loader.dispose()


def _refuse_loops(node: yaml.Node, above: list[yaml.Node], seen: set[int]) -> None:
    """Refuse a value that is one of those that it stands in; each is walked through once."""
    if any(node is each for each in above):
        raise yaml.MarkedYAMLError(
            problem="a value holds itself by its alias", problem_mark=node.start_mark
        )
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):
        return
    seen.add(id(node))
    is_mapping = isinstance(node, yaml.MappingNode)
    for below in (each for pair in node.value for each in pair) if is_mapping else node.value:
        _refuse_loops(below, [*above, node], seen)
