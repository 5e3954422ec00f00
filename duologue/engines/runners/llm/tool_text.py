"""Finds function calls in what a language model writes, so that nobody reads or speaks their form.

Models are trained on a form of their own and do not always keep to it. Understood are
``<tool_call>{"name": ..., "arguments": {...}}</tool_call>`` as Hermes and Qwen write it, the same
object in a fenced code block, and the bare object where an answer begins with it. A piece that may
be the beginning of a call is held back until it is known. This module must not know which model
writes, or what becomes of a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from duologue.engines.payloads import TextDelta, ToolCallDelta, Tools

_TAG = re.compile(r"<(tool_call|tools|function_call)>")
_CLOSING_TAG = re.compile(r"</(?:tool_call|tools|function_call)>")
_FENCE = "```"
_OPENERS = ("<tool_call>", "<tools>", "<function_call>", _FENCE)
_FENCE_HEAD = re.compile(r"```[\w-]*[ \t]*\n?\s*")
_BETWEEN = re.compile(r"(?:[\s,;\[\]]|```[\w-]*|</?(?:tool_call|tools|function_call)>)*")
LONGEST_CALL_CHARS = 65_536
"""What is held back at most to find the end of a call."""

_JSON = json.JSONDecoder()

TextOrCall = TextDelta | ToolCallDelta


class ToolTextReader:
    """One answer, read piece by piece.

    After a call only further calls count: models explain themselves in words that are not meant
    to be heard.

    Args:
        tools: What may be called. With none, all text is an answer.
    """

    def __init__(self, tools: Tools) -> None:
        self._names = frozenset(function.name for function in tools.functions)
        self._held = ""
        self._calls = 0
        self._begun = False
        self._in_code = False

    def feed(self, text: str) -> Iterator[TextOrCall]:
        """Read more; yields what is known to be text or a call."""
        if not self._names:
            yield TextDelta(text)
            return
        self._held += text
        yield from self._read(at_end=False)

    def finish(self) -> Iterator[TextOrCall]:
        """Say that no more follows; yields the rest."""
        yield from self._read(at_end=True)

    def _read(self, *, at_end: bool) -> Iterator[TextOrCall]:
        while self._held:
            before = (self._held, self._begun, self._in_code)
            if self._calls:
                yield from self._more_calls(at_end=at_end)
            else:
                yield from self._text(at_end=at_end)
            if (self._held, self._begun, self._in_code) == before:
                return

    def _text(self, *, at_end: bool) -> Iterator[TextOrCall]:
        held = self._held
        if self._in_code:
            yield from self._code(at_end=at_end)
            return
        if not self._begun and held.lstrip().startswith("{"):
            yield from self._object(len(held) - len(held.lstrip()), 0, "", at_end=at_end)
            return
        place, opener = min(
            ((held.find(each), each) for each in _OPENERS if each in held), default=(-1, "")
        )
        if place < 0:
            # What may become an opener, or white space before one, waits for what follows.
            keep = 0 if at_end else _may_open(held)
            yield from self._say(len(held) - keep)
        elif held[:place].strip():
            yield from self._say(len(held[:place].rstrip()))
        elif opener == _FENCE:
            head = _FENCE_HEAD.match(held, place)
            assert head is not None, "it begins with a fence"
            if head.end() == len(held) and not at_end:
                return
            yield from self._object(head.end(), place, _FENCE, at_end=at_end)
        else:
            yield from self._object(place + len(opener), place, opener, at_end=at_end)

    def _object(self, start: int, place: int, opener: str, *, at_end: bool) -> Iterator[TextOrCall]:
        """Read the JSON that begins at ``start``; what it stands in began at ``place``."""
        body = self._held[start:].lstrip()
        start = len(self._held) - len(body)
        is_tag = opener not in ("", _FENCE)
        if not body and not at_end:
            return
        if body[:1] not in ("{", "[", "<") and not is_tag:
            yield from self._no_call(opener)
            return
        if body[:1] == "<" and not is_tag:
            tag = _TAG.match(body)
            if tag is not None:
                self._held = self._held[start:]
            elif at_end or not any(each.startswith(body) for each in _OPENERS):
                yield from self._no_call(opener)
            return
        found, end = _decode(body)
        if end < 0:
            if not at_end and len(body) < LONGEST_CALL_CHARS and not _closed(body, is_tag):
                return
            if is_tag:
                yield self._broken()
                closing = _CLOSING_TAG.search(self._held, place)
                self._held = self._held[closing.end() :] if closing else ""
            else:
                yield from self._no_call(opener)
            return
        calls = list(_calls_in(found, None if is_tag else self._names))
        if not calls and not is_tag:
            yield from self._no_call(opener)
            return
        self._held = self._held[start + end :]
        if not calls:
            yield self._broken()
        for name, arguments in calls:
            yield self._call(name, arguments)

    def _more_calls(self, *, at_end: bool) -> Iterator[TextOrCall]:
        between = _BETWEEN.match(self._held)
        assert between is not None, "it matches the empty text"
        rest = self._held[between.end() :]
        if not rest.startswith("{"):
            # A tag may be cut in two; all else is no call.
            opening = rest.rfind("<")
            self._held = "" if at_end or opening < 0 else rest[opening:]
            brace = rest.find("{")
            if brace >= 0 and self._held == "":
                self._held = rest[brace:]
            return
        found, end = _decode(rest)
        if end < 0:
            is_waiting = not at_end and len(rest) < LONGEST_CALL_CHARS
            self._held = rest if is_waiting else ""
            return
        self._held = rest[end:]
        for name, arguments in _calls_in(found, self._names):
            yield self._call(name, arguments)

    def _code(self, *, at_end: bool) -> Iterator[TextOrCall]:
        closing = self._held.find(_FENCE, len(_FENCE) if self._held.startswith(_FENCE) else 0)
        if closing >= 0:
            self._in_code = False
            yield from self._say(closing + len(_FENCE))
        else:
            keep = 0 if at_end else len(self._held) - len(self._held.rstrip("`"))
            yield from self._say(len(self._held) - keep)

    def _no_call(self, opener: str) -> Iterator[TextOrCall]:
        """What looked like a call is text."""
        self._begun = True
        if opener == _FENCE:
            self._in_code = True
            yield from self._say(self._held.find(_FENCE) + len(_FENCE))

    def _say(self, end: int) -> Iterator[TextOrCall]:
        text, self._held = self._held[:end], self._held[end:]
        if text:
            self._begun = self._begun or bool(text.strip())
            yield TextDelta(text)

    def _call(self, name: str, arguments: str) -> ToolCallDelta:
        self._calls += 1
        return ToolCallDelta(self._calls - 1, name=name, arguments=arguments)

    def _broken(self) -> ToolCallDelta:
        """A call that nobody can read: it has no name."""
        return self._call("", "")


def schema_of_call(tools: Tools) -> str:
    """Return a JSON Schema, as JSON text, that only a call of an allowed function obeys."""
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"const": function.name},
                "arguments": json.loads(function.parameters),
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for function in tools.functions
        if tools.allows(function.name)
    ]
    return json.dumps(calls[0] if len(calls) == 1 else {"anyOf": calls})


def _may_open(text: str) -> int:
    """Return how much of the end of ``text`` may be the beginning of a call."""
    blank = len(text) - len(text.rstrip())
    body = text.rstrip()
    for size in range(min(len(body), max(map(len, _OPENERS)) - 1), 0, -1):
        if any(each.startswith(body[-size:]) for each in _OPENERS):
            start = body[:-size].rstrip()
            return len(text) - len(start)
    return blank


def _decode(text: str) -> tuple[Any, int]:
    """Read one JSON value; returns it and where it ends, -1 where it does not."""
    if "}" not in text and "]" not in text:
        return None, -1
    try:
        return _JSON.raw_decode(text)
    except (ValueError, RecursionError):
        return None, -1


def _closed(body: str, is_tag: bool) -> bool:
    return (_CLOSING_TAG.search(body) is not None) if is_tag else (_FENCE in body)


def _calls_in(found: Any, names: frozenset[str] | None) -> Iterator[tuple[str, str]]:
    """Yield name and arguments of the calls in a value.

    Args:
        found: What the model wrote.
        names: Only functions with these names; ``None``: any name.
    """
    for each in found if isinstance(found, list) else [found]:
        inner = each.get("function", each) if isinstance(each, dict) else None
        if not isinstance(inner, dict):
            continue
        name = inner.get("name")
        arguments = inner.get("arguments", inner.get("parameters"))
        if isinstance(arguments, str):
            arguments, end = _decode(arguments)
            arguments = arguments if end >= 0 else None
        if not isinstance(name, str) or not isinstance(arguments, dict):
            continue
        if names is None or name in names:
            yield name, json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
