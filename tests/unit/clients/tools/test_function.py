from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest

from duologue.clients.tools.function import (
    BadArguments,
    BadResult,
    Tool,
    ToolContext,
    as_tool,
    definitions,
    problem,
    written,
)
from duologue.core.errors import ConfigError
from duologue.protocol.session_config import FunctionTool


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


@dataclass
class Place:
    """Somewhere."""

    city: str
    country: str = "France"


def forecast(
    place: Place, days: int = 3, unit: Unit = Unit.CELSIUS, *, tone: Literal["dry", "warm"] = "dry"
) -> str:
    """Tell the weather.

    Args:
        place: Where.
        days: From today on.
    """
    return f"{place.city}, {place.country}: {days} {unit.name} {tone}"


def context(work: Any = None) -> ToolContext:
    return ToolContext("call_1", "resp_1", work)


def test_the_model_is_told_what_the_function_says_of_itself() -> None:
    definition = Tool(forecast).definition
    assert (definition.name, definition.description) == ("forecast", "Tell the weather.")
    schema = definition.parameters
    assert schema is not None
    assert schema["required"] == ["place"]
    assert schema["additionalProperties"] is False
    days = schema["properties"]["days"]
    assert days == {"type": "integer", "description": "From today on.", "default": 3}
    assert schema["properties"]["tone"]["enum"] == ["dry", "warm"]
    assert schema["$defs"]["Unit"]["enum"] == ["c", "f"]
    assert schema["$defs"]["Place"]["properties"]["country"]["default"] == "France"


def test_arguments_arrive_as_the_types_that_were_asked_for() -> None:
    given = Tool(forecast).arguments('{"place":{"city":"Nice"},"days":"2","unit":"f"}', context())
    assert forecast(**given) == "Nice, France: 2 FAHRENHEIT dry"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "truncated"),
        ("{}", "missing required field `place`"),
        ('{"place":"Nice"}', r"Expected `object`, got `str` - at `\$.place`"),
        ('{"place":{"city":"Nice"},"day":2}', "unknown field `day`"),
        ("[" * 100_000, "wrong"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_words_for_the_model(text: str, said: str) -> None:
    with pytest.raises(BadArguments, match=said):
        Tool(forecast).arguments(text, context())


def test_a_function_without_arguments_takes_an_empty_text() -> None:
    def now() -> str:
        return "noon"

    assert Tool(now).arguments("", context()) == {}
    assert Tool(now).definition.parameters == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_arguments_without_hints_may_be_anything_and_mutable_defaults_are_no_trap() -> None:
    def note(what, tags=[]):  # type: ignore[no-untyped-def]  # noqa: B006
        return what, tags

    tool = Tool(note)
    first = tool.arguments('{"what":[1]}', context())
    first["tags"].append("x")
    assert tool.arguments('{"what":"y"}', context()) == {"what": "y", "tags": []}


def test_the_context_is_filled_in_and_not_shown() -> None:
    def who(name: str, call: ToolContext) -> str:
        return name + call.call_id

    tool = Tool(who)
    assert tool.definition.parameters is not None
    assert list(tool.definition.parameters["properties"]) == ["name"]
    assert who(**tool.arguments('{"name":"x"}', context())) == "xcall_1"


def test_methods_partials_and_objects_that_can_be_called_are_functions_too() -> None:
    class Lamp:
        def switch(self, on: bool) -> bool:
            """Switch the lamp."""
            return on

        async def __call__(self, level: int) -> int:
            return level

    assert Tool(Lamp().switch).definition.description == "Switch the lamp."
    dimmer = Tool(Lamp(), name="dim")
    assert dimmer.is_async
    assert dimmer.arguments('{"level":3}', context()) == {"level": 3}
    nice = Tool(functools.partial(forecast, Place("Nice")), name="nice")
    assert nice.definition.parameters is not None
    assert "place" not in nice.definition.parameters["properties"]


def test_an_async_function_is_known_as_one() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    assert Tool(wait).is_async
    assert not Tool(forecast).is_async


@pytest.mark.parametrize("name", ["", "with space", "x" * 65, "é"])
def test_a_name_that_models_cannot_call_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="name of a tool"):
        Tool(lambda: None, name=name)


def test_what_cannot_be_told_to_a_model_is_refused_at_once() -> None:
    def many(*places: str) -> None: ...

    def odd(place: asyncio.Event) -> None: ...

    def missing(place: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ConfigError, match=r"\*places"):
        Tool(many)
    with pytest.raises(ConfigError, match="Event"):
        Tool(odd)
    with pytest.raises(ConfigError, match="Nowhere"):
        Tool(missing)
    with pytest.raises(ConfigError, match="time-out"):
        Tool(forecast, timeout_s=0)


def test_bare_definitions_stay_as_they_are() -> None:
    bare = FunctionTool(name="bare")
    tool = Tool(forecast, name="other", description="Otherwise.")
    assert as_tool(bare) is bare
    assert as_tool(tool) is tool
    assert [each.name for each in definitions([bare, tool, forecast])] == [
        "bare",
        "other",
        "forecast",
    ]
    assert tool.definition.description == "Otherwise."


def test_results_are_text_or_json() -> None:
    assert written("as it is") == "as it is"
    assert written({"a": [1, None]}) == '{"a":[1,null]}'
    assert written(Place("Nice")) == '{"city":"Nice","country":"France"}'
    with pytest.raises(BadResult, match="object, which is no JSON"):
        written(object())
    with pytest.raises(BadResult, match="limit is 262144"):
        written("x" * 300_000)


def test_a_problem_is_short_and_json() -> None:
    assert problem('no "such" place') == r'{"error":"no \"such\" place"}'
    assert len(problem("x" * 10_000)) < 2100


async def test_a_context_lets_a_thread_wait_for_the_loop() -> None:
    async def work() -> int:
        return 5

    def run(awaited: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(awaited, loop).result()

    loop = asyncio.get_running_loop()
    assert await asyncio.to_thread(context(run).run, work()) == 5
