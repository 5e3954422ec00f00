from __future__ import annotations

import json

import pytest

from duologue.core.errors import EngineError
from duologue.engines.payloads import NO_TOOLS, ChatMessage, ChatRequest, Tools, ToolSpec
from duologue.engines.runners.llm.requests import held_to_calls, no_adapter, refuse_pictures

LIGHT, SOUND = ToolSpec("light"), ToolSpec("sound")


def ask(tools: Tools, schema: str = "") -> ChatRequest:
    return ChatRequest((ChatMessage("user", "Hi"),), 10, tools=tools, schema=schema)


def test_a_model_that_may_call_nothing_is_shown_nothing() -> None:
    assert held_to_calls(ask(Tools((LIGHT,), choice="none"))).tools == NO_TOOLS


def test_a_model_that_may_call_is_left_alone() -> None:
    request = ask(Tools((LIGHT,)))
    assert held_to_calls(request) == request


def test_a_model_that_must_call_is_held_to_the_form_of_a_call() -> None:
    held = held_to_calls(ask(Tools((LIGHT, SOUND), choice="required", only="sound")))
    assert json.loads(held.schema)["properties"]["name"] == {"const": "sound"}
    assert held.tools == Tools((LIGHT, SOUND))


def test_a_form_that_the_client_wants_goes_first() -> None:
    held = held_to_calls(ask(Tools((LIGHT,), choice="required"), schema="{}"))
    assert held.schema == "{}"


def test_pictures_are_for_models_that_see() -> None:
    refuse_pictures(ask(Tools()))
    seeing = ChatRequest((ChatMessage("user", "", images=("data:image/",)),), 10)
    with pytest.raises(EngineError, match="does not see"):
        refuse_pictures(seeing)


def test_adapters_that_there_are_are_named() -> None:
    assert "'c'; there are: a, b" in no_adapter("c", ["b", "a"]).message
    assert "none" in no_adapter("c", ()).message
