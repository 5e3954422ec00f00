"""The reference page of all settings, made from the classes that declare them.

It must not know which sections exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from duologue.config.names import env_name
from duologue.config.section import Section

_PREFACE = """\
# Settings

Made from the classes that declare them, by `duologue config reference`; change those instead.
How values are given, and which source wins, stands in [operations.md](operations.md).
"""

_BOUNDS = {
    "minimum": " from {}",
    "exclusiveMinimum": " above {}",
    "maximum": " to {}",
    "exclusiveMaximum": " below {}",
    "minItems": ", at least {}",
    "maxItems": ", at most {}",
}

Schema = Mapping[str, Any]
"""A JSON schema, as pydantic makes it. Stays inside this module."""


def settings_page(root: type[Section]) -> str:
    """Return the page in Markdown: one table for each section, one row for each setting."""
    schema = root.model_json_schema()
    return "\n".join([_PREFACE, *_section(schema, schema, "")])


def _section(whole: Schema, schema: Schema, prefix: str) -> Iterator[str]:
    rows, below = [], []
    for name, field in schema.get("properties", {}).items():
        key = f"{prefix}{name}"
        inner = _resolved(whole, field)
        if "properties" in inner:
            below.append((inner, key + "."))
            continue
        item = _resolved(whole, field.get("items", {}))
        if "properties" in item:
            below.append((item, key + "[]."))
        default = "required" if name in schema.get("required", ()) else _default(field)
        text = _on_one_line(field.get("description", ""))
        rows.append(f"| `{key}` | {_shape(whole, field)} | {default} | {text} |")
    if rows:
        yield f"## {prefix.rstrip('.') or 'general'}\n"
        yield f"{_on_one_line(schema.get('description', ''))}\n"
        if prefix and "[]" not in prefix:
            yield f"In the environment: `{env_name(prefix.rstrip('.'))}__NAME`.\n"
        yield "| Setting | Takes | Default | What it does |"
        yield "| --- | --- | --- | --- |"
        yield from rows
        yield ""
    for inner, key in below:
        yield from _section(whole, inner, key)


def _resolved(whole: Schema, schema: Schema) -> Schema:
    """Follow a reference to a shared definition."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    definition: Schema = whole["$defs"][reference.rpartition("/")[2]]
    return definition


def _shape(whole: Schema, schema: Schema) -> str:
    schema = _resolved(whole, schema)
    if "anyOf" in schema:
        shapes = [_shape(whole, each) for each in schema["anyOf"]]
        return " or ".join(each for each in shapes if each != "null") + (
            ", or nothing" if "null" in shapes else ""
        )
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    bounds = [text.format(f"{schema[key]:,}") for key, text in _BOUNDS.items() if key in schema]
    return "".join([_kind(whole, schema), *bounds])


def _kind(whole: Schema, schema: Schema) -> str:
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return f"list of {_shape(whole, schema.get('items', {}))}"
    if kind == "object":
        below = schema.get("additionalProperties")
        return f"mapping to {_shape(whole, below)}" if isinstance(below, dict) else "mapping"
    if kind == "string":
        return {"path": "path", "password": "secret"}.get(schema.get("format", ""), "text")
    return kind


def _default(field: Schema) -> str:
    """What holds unless set; empty where that is nothing, or depends on the machine."""
    value = field.get("default")
    if value is None or value in ("", [], {}):
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _on_one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
