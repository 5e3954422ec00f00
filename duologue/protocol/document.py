"""Writes docs/protocol.md from the message classes: ``python -m duologue.protocol.document``.

What the classes cannot say stands in ``protocol_notes.md`` beside this module. This module must
not describe what the server does with a message.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from types import ModuleType
from typing import Any, get_args

import msgspec
from msgspec import inspect as shapes

from duologue.protocol import limits
from duologue.protocol.commands import Command, RealtimeCommand
from duologue.protocol.duplex.commands import DuplexCommand
from duologue.protocol.duplex.events import DuplexEvent
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.errors import ERROR_TABLE
from duologue.protocol.events import RealtimeEvent
from duologue.protocol.on_interruption import OnInterruption


def protocol_page() -> str:
    """Return the whole page."""
    notes = resources.files("duologue.protocol").joinpath("protocol_notes.md")
    commands, events = get_args(RealtimeCommand), get_args(RealtimeEvent)
    duplex_commands, duplex_events = get_args(DuplexCommand), get_args(DuplexEvent)
    parts = [
        notes.read_text(encoding="utf-8").rstrip(),
        "## Client events\n\nEach may carry an `event_id`.",
        *(_message(cls) for cls in commands),
        "## Server events\n\nEach carries an `event_id`.",
        *(_message(cls) for cls in events),
        _DUPLEX.strip(),
        *(_message(cls) for cls in duplex_commands),
        "## Duplex server events\n\nEach also carries a `server_event_seq`, as every event there.",
        *(_message(cls) for cls in duplex_events),
        "## Objects inside events",
        *(_object(cls) for cls in _inner_objects((*commands, *events))),
        *(_object(cls) for cls in _DUPLEX_OBJECTS),
        *(_object(cls) for cls in _duplex_objects(commands, events, duplex_events)),
        _errors(),
        _limits(),
    ]
    return "\n\n".join(parts) + "\n"


_DUPLEX = """
## Duplex client events

What a connection may say that asked for the duplex dialect, besides the above. Commands of the same
name stand in place of those above. [The dialect on a page of its own](duplex.md).
"""

_DUPLEX_OBJECTS: tuple[type[msgspec.Struct], ...] = (DuplexPatch, DuplexSessionResource)
"""What stands in place of the session in ``session.update``, and in the answers to it."""


def _duplex_objects(
    *realtime: tuple[type[msgspec.Struct], ...],
) -> list[type[msgspec.Struct]]:
    known = {*_inner_objects(sum(realtime[:2], ())), *_DUPLEX_OBJECTS}
    found = _inner_objects((*realtime[2], *_DUPLEX_OBJECTS))
    return [cls for cls in found if cls not in known]


_FATES: Mapping[OnInterruption | None, str] = {
    OnInterruption.CLEARABLE: "Clearable: an interruption takes back what was not sent yet.",
    OnInterruption.DROPPABLE: "Droppable: it may be left out where the client reads too slowly.",
}


def _message(cls: type[msgspec.Struct]) -> str:
    fate = _FATES.get(getattr(cls, "on_interruption", None))
    lines = [f"### `{cls.__struct_config__.tag}`", "", _text(cls)]
    if fate is not None:
        lines += ["", fate]
    return "\n".join(lines + _fields(cls))


def _object(cls: type[msgspec.Struct]) -> str:
    return "\n".join([f"### {cls.__name__}", "", _text(cls), *_fields(cls)])


def _text(documented: type) -> str:
    return _plain(inspect.getdoc(documented) or "")


def _fields(cls: type[msgspec.Struct]) -> list[str]:
    info = shapes.type_info(cls)
    assert isinstance(info, shapes.StructType)
    notes = _notes(ast.parse(inspect.getsource(cls)).body[0])
    rows = []
    if isinstance(info.tag, str) and info.tag_field:
        rows.append(f'| `{info.tag_field}` | "{info.tag}" | yes | |')
    for field in info.fields:
        if field.name == "event_id" and cls in get_args(Command):
            continue
        note = _plain(notes.get(field.name, ""))
        always = "yes" if field.required else _default(field.default)
        rows.append(f"| `{field.encode_name}` | {_shape(field.type)} | {always} | {note} |")
    return (
        ["", "| field | value | required | |", "| --- | --- | --- | --- |", *rows] if rows else []
    )


def _default(default: Any) -> str:
    if default is msgspec.NODEFAULT or isinstance(default, msgspec.Struct):
        return "no"
    return f"no, else {msgspec.json.encode(default).decode()}"


def _shape(shape: shapes.Type) -> str:
    match shape:
        case shapes.UnionType(types=types):
            return " or ".join(_shape(inner) for inner in types)
        case shapes.LiteralType(values=values):
            return ", ".join(
                f'"{value}"' if isinstance(value, str) else str(value)
                for value in sorted(values, key=str)
            )
        case shapes.StructType(cls=cls):
            return f"[{cls.__name__}](#{cls.__name__.lower()})"
        case shapes.VarTupleType(item_type=inner):
            return f"list of {_shape(inner)}"
        case shapes.DictType(value_type=shapes.StrType()):
            return "object of strings"
        case _:
            return _SIMPLE[type(shape)]


_SIMPLE: dict[type[shapes.Type], str] = {
    shapes.StrType: "string",
    shapes.IntType: "integer",
    shapes.FloatType: "number",
    shapes.BoolType: "boolean",
    shapes.BytesType: "base64",
    shapes.NoneType: "null",
    shapes.DictType: "object",
}


def _inner_objects(messages: Iterable[type[msgspec.Struct]]) -> list[type[msgspec.Struct]]:
    """Every struct that a message holds, once, in order of first appearance."""
    found: dict[type[msgspec.Struct], None] = {}
    for message in messages:
        info = shapes.type_info(message)
        assert isinstance(info, shapes.StructType)
        for field in info.fields:
            for cls in _structs(field.type):
                found.setdefault(cls)
    return list(found)


def _structs(shape: shapes.Type) -> Iterator[type[msgspec.Struct]]:
    match shape:
        case shapes.StructType(cls=cls, fields=fields):
            yield cls
            for field in fields:
                yield from _structs(field.type)
        case shapes.UnionType(types=types):
            for inner in types:
                yield from _structs(inner)
        case shapes.VarTupleType(item_type=inner):
            yield from _structs(inner)
        case _:
            return


def _errors() -> str:
    lines = [
        "## Error codes",
        "",
        "The close code is used only where the error ends the connection.",
        "",
        "| code | type | HTTP | close | retry | meaning |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for code, row in ERROR_TABLE.items():
        retry = "yes" if row.retryable else "no"
        lines.append(
            f"| `{code}` | {row.type} | {row.http_status} | {row.close_code} | {retry} "
            f"| {row.public_text} |"
        )
    return "\n".join(lines)


def _limits() -> str:
    notes = _notes(ast.parse(inspect.getsource(limits)))
    lines = ["## Limits", "", "| name | value | |", "| --- | --- | --- |"]
    for name in _constants(limits):
        lines.append(f"| `{name}` | {getattr(limits, name):,} | {_plain(notes.get(name, ''))} |")
    return "\n".join(lines)


def _constants(module: ModuleType) -> list[str]:
    return [name for name in vars(module) if name.isupper()]


def _notes(body: ast.AST) -> dict[str, str]:
    """The strings that stand under fields and constants, by name."""
    notes: dict[str, str] = {}
    above = ""
    for statement in getattr(body, "body", ()):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                above = name
            case ast.Expr(value=ast.Constant(value=str() as text)) if above:
                notes[above] = " ".join(text.split())
                above = ""
            case _:
                above = ""
    return notes


def _plain(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(protocol_page())
