"""Hypothesis strategies for wire objects, made from the classes themselves."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

import msgspec
from hypothesis import strategies as st
from msgspec import inspect as shapes

from duologue.protocol.commands import RealtimeCommand, TruncateItem
from duologue.protocol.events import RealtimeEvent
from duologue.protocol.items import (
    InputAudio,
    InputImage,
    InputText,
    MessageItem,
    OutputAudio,
    OutputText,
)

TEXT = st.text(max_size=12)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


@cache
def of(cls: Any) -> st.SearchStrategy[Any]:
    """Any value that the class allows, with optional fields left out at times."""
    return _of(shapes.type_info(cls))


@cache
def commands() -> st.SearchStrategy[Any]:
    return st.one_of([of(cls) for cls in get_args(RealtimeCommand)])


@cache
def events() -> st.SearchStrategy[Any]:
    return st.one_of([of(cls) for cls in get_args(RealtimeEvent)])


def _of(shape: shapes.Type) -> st.SearchStrategy[Any]:
    match shape:
        case shapes.StrType(min_length=least, max_length=most):
            return st.text(**_sizes(least, most, 12))
        case shapes.IntType(ge=least, le=most):
            return st.integers(
                -(2**63) if least is None else least, 2**63 - 1 if most is None else most
            )
        case shapes.FloatType():
            return st.floats(allow_nan=False, allow_infinity=False)
        case shapes.BoolType():
            return st.booleans()
        case shapes.NoneType():
            return st.none()
        case shapes.BytesType(min_length=least, max_length=most):
            return st.binary(**_sizes(least, most, 40))
        case shapes.LiteralType(values=values):
            return st.sampled_from(sorted(values, key=str))
        case shapes.UnionType(types=types):
            return st.one_of([_of(inner) for inner in types])
        case shapes.VarTupleType(item_type=inner, min_length=least, max_length=most):
            return st.lists(_of(inner), **_sizes(least, most, 3)).map(tuple)
        case shapes.DictType(value_type=shapes.AnyType()):
            return st.dictionaries(TEXT, JSON_VALUES, max_size=3)
        case shapes.DictType(value_type=inner):
            return st.dictionaries(TEXT, _of(inner), max_size=3)
        case shapes.StructType(cls=cls):
            return st.deferred(lambda: _SPECIAL[cls]() if cls in _SPECIAL else _struct(shape))
        case shapes.DataclassType(cls=cls, fields=fields):
            return st.fixed_dictionaries({f.name: _of(f.type) for f in fields}).map(
                lambda given: cls(**given)
            )
        case shapes.EnumType(cls=cls):
            return st.sampled_from(list(cls))
        case shapes.ListType(item_type=inner, min_length=least, max_length=most):
            return st.lists(_of(inner), **_sizes(least, most, 3))
        case shapes.TupleType(item_types=types):
            return st.tuples(*[_of(inner) for inner in types])
        case shapes.RawType():
            return st.just(msgspec.Raw(msgspec.msgpack.encode("any")))
        case _:
            raise NotImplementedError(shape)


def _sizes(least: int | None, most: int | None, usual: int) -> dict[str, int]:
    """What the class allows, and no more than is usual where it allows more."""
    floor = least or 0
    return {"min_size": floor, "max_size": max(floor, usual if most is None else min(most, usual))}


def _struct(shape: shapes.StructType, **fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    required = {f.name: _of(f.type) for f in shape.fields if f.required}
    optional = {f.name: _of(f.type) for f in shape.fields if not f.required}
    for name, strategy in fixed.items():
        required.pop(name, None)
        optional.pop(name, None)
        required[name] = strategy
    return st.fixed_dictionaries(required, optional=optional).map(lambda f: shape.cls(**f))


def _special(cls: type[msgspec.Struct], **fixed: st.SearchStrategy[Any]) -> Any:
    info = shapes.type_info(cls)
    assert isinstance(info, shapes.StructType)
    return _struct(info, **fixed)


def _message_items() -> st.SearchStrategy[Any]:
    """Parts fit the role, since the decoder refuses others."""
    by_role = {
        "system": of(InputText),
        "user": st.one_of(of(InputText), of(InputAudio), of(InputImage)),
        "assistant": st.one_of(of(OutputText), of(OutputAudio)),
    }
    return st.sampled_from(sorted(by_role)).flatmap(
        lambda role: _special(
            MessageItem,
            role=st.just(role),
            content=st.lists(by_role[role], max_size=3).map(tuple),
        )
    )


_SPECIAL = {
    MessageItem: _message_items,
    InputImage: lambda: _special(InputImage, image_url=TEXT.map("data:image/png;base64,{}".format)),
    TruncateItem: lambda: _special(
        TruncateItem,
        content_index=st.integers(0, 9),
        audio_end_ms=st.integers(0, 10**12),
    ),
}
