"""A Python function as a tool: its name, what it is for, and the schema of its arguments.

All of it is read from the function itself, its type hints and its docstring. This module must not
know when a tool is called.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from duologue.clients.tools.docstring import read_docstring
from duologue.core.errors import ConfigError
from duologue.protocol.limits import MAX_ITEM_TEXT_CHARS, MAX_TOOL_NAME_CHARS
from duologue.protocol.session_config import FunctionTool, JsonObject

TIMEOUT_S = 30.0
"""How long a function may take, unless it says otherwise."""

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")
_NO_ARGUMENTS = "{}"
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Which call a function is serving, for functions that have an argument of this type.

    Args:
        call_id: The model's id of this call.
        response_id: The answer in which the model calls.
    """

    call_id: str
    response_id: str
    _run: Callable[[Coroutine[Any, Any, Any]], Any]

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something on the call's event loop, from a function that is not async.

        ``context.run(call.say_text("One moment."))``. Blocks the function's own thread only.

        Raises:
            RuntimeError: It is called on the loop itself: an async function awaits instead.
        """
        result: T = self._run(work)
        return result


class BadArguments(ValueError):
    """The model's arguments do not fit the function; the message is for the model."""


class BadResult(ValueError):
    """What a function returned cannot be told to a model; the message is for both."""


class Tool:
    """A function that the model may call.

    Type hints become the schema of its arguments: numbers, strings, enumerations, literals, lists,
    dictionaries, dataclasses, and defaults. The docstring says what it is for; its ``Args:``
    describe them. An argument of type ``ToolContext`` is filled in, and not shown to the model.

    Args:
        function: Runs in a thread of its own; an async one runs as a task on the call's loop.
        name: What the model calls it; the function's own name without one.
        description: What it is for; from the docstring without one.
        timeout_s: When the model is told that it takes too long. A task is then cancelled; a
            thread cannot be, and what it returns later is dropped.

    Raises:
        ConfigError: It has no usable name, or an argument has a type that no schema can say.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.name = str(name or getattr(function, "__name__", ""))
        if not _NAME.match(self.name) or len(self.name) > MAX_TOOL_NAME_CHARS:
            raise ConfigError(
                f"'{self.name[:80]}' cannot be the name of a tool: letters, digits, _ and -, up to "
                f"{MAX_TOOL_NAME_CHARS}. Give one with Tool(function, name=...)."
            )
        if timeout_s <= 0:
            raise ConfigError(f"the time-out of '{self.name}' is {timeout_s} s, it must be above 0")
        said = read_docstring(getattr(function, "__doc__", None))
        self.function = function
        self.timeout_s = timeout_s
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  # an object may be async to call
        )
        fields, self._context = self._read_signature(said.arguments)
        self._arguments = msgspec.defstruct(
            self.name.replace("-", "_"), fields, kw_only=True, forbid_unknown_fields=True
        )
        self.definition = FunctionTool(
            name=self.name,
            description=description or said.summary or None,
            parameters=self._schema(),
        )
        """What the model is told."""

    def arguments(self, text: str, context: ToolContext) -> dict[str, Any]:
        """Read the model's arguments, as keywords of the function.

        Raises:
            BadArguments: They are not JSON, or not what the function takes.
        """
        try:
            read = msgspec.json.decode(text or _NO_ARGUMENTS, type=self._arguments, strict=False)
        except (msgspec.MsgspecError, RecursionError) as exc:
            raise BadArguments(f"the arguments of {self.name} are wrong: {exc}") from exc
        given = {name: getattr(read, name) for name in read.__struct_fields__}
        if self._context is not None:
            given[self._context] = context
        return given

    def _read_signature(
        self, described: Mapping[str, str]
    ) -> tuple[list[tuple[str, Any] | tuple[str, Any, Any]], str | None]:
        """Return the fields of the arguments, and which one wants the context."""
        try:
            signature = inspect.signature(self.function)
            hints = typing.get_type_hints(_hinted(self.function), include_extras=True)
        except (TypeError, ValueError, NameError) as exc:
            raise ConfigError(f"the arguments of '{self.name}' cannot be read: {exc}") from exc
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        context = None
        for parameter in signature.parameters.values():
            if parameter.kind not in _BY_NAME:
                raise ConfigError(
                    f"'{self.name}' takes {parameter}: a model gives each argument by its name"
                )
            hint = hints.get(parameter.name, Any)
            if hint is ToolContext:
                context = parameter.name
                continue
            if parameter.name in described:
                hint = Annotated[hint, msgspec.Meta(description=described[parameter.name])]
            if parameter.default is inspect.Parameter.empty:
                fields.append((parameter.name, hint))
            else:
                fields.append((parameter.name, hint, _default(parameter.default)))
        return fields, context

    def _schema(self) -> JsonObject:
        try:
            schema = msgspec.json.schema(self._arguments)
        except (TypeError, ValueError) as exc:
            raise ConfigError(
                f"an argument of '{self.name}' has a type that a model cannot be told: {exc}"
            ) from exc
        parts = schema["$defs"]
        own: JsonObject = parts.pop(schema["$ref"].rpartition("/")[2])
        own.pop("title", None)
        # Servers of language models ask for it, even where it is the default.
        own.setdefault("required", [])
        if parts:
            own["$defs"] = parts
        return own


ToolLike: TypeAlias = Tool | Callable[..., Any] | FunctionTool
"""A function, a function with more said about it, or a bare definition whose calls the program
answers by itself."""


def as_tool(given: ToolLike) -> Tool | FunctionTool:
    """Make a tool of a function.

    Raises:
        ConfigError: It cannot be one.
    """
    return given if isinstance(given, Tool | FunctionTool) else Tool(given)


def definitions(given: Sequence[ToolLike]) -> tuple[FunctionTool, ...]:
    """Return what the model is told of each."""
    tools = map(as_tool, given)
    return tuple(tool.definition if isinstance(tool, Tool) else tool for tool in tools)


def written(result: object) -> str:
    """Return what a function returned as the text that the model reads.

    Raises:
        BadResult: It is no JSON, or too long.
    """
    try:
        text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:
        raise BadResult(f"it returned {type(result).__name__}, which is no JSON: {exc}") from exc
    if len(text) > MAX_ITEM_TEXT_CHARS:
        raise BadResult(
            f"it returned {len(text)} characters, the limit is {MAX_ITEM_TEXT_CHARS}; "
            "ask it for less"
        )
    return text


def problem(message: str) -> str:
    """Return a failure as the text that the model reads."""
    return msgspec.json.encode({"error": message[:_SHOWN_CHARS]}).decode()


_SHOWN_CHARS = 2000


def _hinted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where the type hints stand: of an object that can be called, on its method."""
    inner = getattr(function, "func", function)
    named = inspect.isfunction(inner) or inspect.ismethod(inner) or inspect.isbuiltin(inner)
    return inner if named else type(inner).__call__


def _default(value: object) -> Any:
    """A mutable default would be one object for all calls; msgspec refuses it."""
    if isinstance(value, list | dict | set):
        return msgspec.field(default_factory=value.copy)
    return value
