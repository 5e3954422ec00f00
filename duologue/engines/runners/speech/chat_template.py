"""The chat template that a checkpoint brings: how a conversation is written for its model.

What people and programs said is laid in after the template has run, so that nothing in it can pass
for a sign of the conversation's own. This module must not know tokens, or any model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.payloads import ChatMessage, ChatRequest, Tools
from duologue.engines.runners.llm.chat_chunk import REQUEST_REFUSED

_IN_TEXT = "chat_template.jinja"
_IN_JSON = ("chat_template.json", "tokenizer_config.json")
_OPEN, _CLOSE = "\ue000", "\ue001"
"""Around the number of a text that is laid in: private characters, which no template writes."""

_WRONG_USE = (ArithmeticError, LookupError, TypeError, ValueError)
"""What an expression of a template raises for a conversation that it was not written for."""

_LAID_IN = re.compile(f"{_OPEN}(\\d+){_CLOSE}")


class ChatTemplate:
    """One template.

    Args:
        text: In Jinja, as libraries of models agree on.

    Raises:
        ConfigError: It is none.
    """

    def __init__(self, text: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _refuse
        environment.filters["tojson"] = _to_json
        try:
            self._template = environment.from_string(text)
        except TemplateError as exc:
            raise ConfigError(f"the chat template cannot be read: {exc}") from exc

    @classmethod
    def read(cls, folder: Path) -> ChatTemplate:
        """Return the template of a checkpoint.

        Raises:
            ConfigError: It has none.
        """
        file = folder / _IN_TEXT
        if file.is_file():
            return cls(file.read_text(encoding="utf-8"))
        for name in _IN_JSON:
            file = folder / name
            values = msgspec.json.decode(file.read_bytes()) if file.is_file() else {}
            if isinstance(text := values.get("chat_template"), str):
                return cls(text)
        raise ConfigError(
            f"{folder} has no chat template: neither {_IN_TEXT}, nor one in {' or '.join(_IN_JSON)}"
        )

    def write(self, request: ChatRequest, signs: Sequence[str]) -> Iterator[tuple[str, bool]]:
        """Yield the conversation up to where the answer begins, in pieces.

        Args:
            signs: What is special to the model; only where the template writes it is it a sign.

        Returns:
            Each piece, and whether it is a sign.

        Raises:
            EngineError: The template takes no such conversation.
        """
        texts: list[str] = []

        def laid_in(text: str) -> str:
            texts.append(text)
            return f"{_OPEN}{len(texts) - 1}{_CLOSE}" if text else ""

        messages = [_message(each, laid_in) for each in request.messages]
        tools = _functions(request.tools, laid_in)
        try:
            written = self._template.render(
                messages=messages, tools=tools or None, add_generation_prompt=True
            )
        except (TemplateError, *_WRONG_USE) as exc:
            raise EngineError(
                f"the model's template takes no such conversation: {exc}", code=REQUEST_REFUSED
            ) from exc
        longest_first = sorted(signs, key=len, reverse=True)
        parting = re.compile(f"({'|'.join(map(re.escape, longest_first))})")
        for number, piece in enumerate(parting.split(written) if signs else [written]):
            if piece:
                yield _LAID_IN.sub(lambda found: texts[int(found[1])], piece), number % 2 == 1


class _Json:
    """JSON text that is laid in where a template asks for JSON."""

    def __init__(self, mark: str) -> None:
        self.mark = mark


def _to_json(value: Any, **options: Any) -> str:
    if isinstance(value, _Json):
        return value.mark
    return json.dumps(value, ensure_ascii=False, indent=options.get("indent"))


def _refuse(why: str) -> None:
    raise TemplateError(why)


def _message(message: ChatMessage, laid_in: Any) -> dict[str, Any]:
    text = laid_in(message.content.strip())
    made: dict[str, Any] = {"role": message.role, "content": text}
    # A part says what it is by its type in some templates, by its fields in others.
    shown: list[dict[str, str]] = [
        *[{"type": "audio", "audio": ""}] * len(message.recordings),
        *[{"type": "image", "image": ""}] * len(message.images),
    ]
    if shown:
        made["content"] = [*shown, {"type": "text", "text": text}]
    if message.calls:
        made["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {
                    "name": laid_in(call.name),
                    "arguments": _Json(laid_in(_spaced(call.arguments))),
                },
            }
            for call in message.calls
        ]
    if message.role == "tool":
        made["tool_call_id"] = message.call_id
    return made


def _functions(tools: Tools, laid_in: Any) -> list[_Json]:
    """Return what may be called, as a template writes it."""
    if not tools.callable:
        return []
    functions = [
        {
            "type": "function",
            "function": {
                "name": each.name,
                "description": each.description,
                "parameters": json.loads(each.parameters),
            },
        }
        for each in tools.functions
        if tools.allows(each.name)
    ]
    return [_Json(laid_in(json.dumps(each, ensure_ascii=False))) for each in functions]


def _spaced(arguments: str) -> str:
    """Return JSON with the spaces that models have learnt it with."""
    try:
        return json.dumps(json.loads(arguments or "{}"), ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments
