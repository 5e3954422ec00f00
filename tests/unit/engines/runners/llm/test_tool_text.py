"""Calls in what a model writes: found in every cut, and never read aloud."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engines.payloads import TextDelta, ToolCallDelta, Tools, ToolSpec
from duologue.engines.runners.llm.tool_text import (
    LONGEST_CALL_CHARS,
    ToolTextReader,
    schema_of_call,
)

TOOLS = Tools((ToolSpec("get_weather"), ToolSpec("set_timer")))
WEATHER = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
TIMER = '{"name": "set_timer", "arguments": {"minutes": 5}}'
FOUND_WEATHER = ("get_weather", '{"city":"Paris"}')
FOUND_TIMER = ("set_timer", '{"minutes":5}')
BROKEN = ("", "")

Call = tuple[str, str]

CASES: list[tuple[str, str, list[Call]]] = [
    ("Hello there.", "Hello there.", []),
    (f"<tool_call>\n{WEATHER}\n</tool_call>", "", [FOUND_WEATHER]),
    (f"Let me see. <tool_call>{WEATHER}</tool_call>", "Let me see.", [FOUND_WEATHER]),
    (
        f"<tool_call>{WEATHER}</tool_call>\n<tool_call>{TIMER}</tool_call>",
        "",
        [FOUND_WEATHER, FOUND_TIMER],
    ),
    (f"```json\n{WEATHER}\n```", "", [FOUND_WEATHER]),
    (f"```\n{WEATHER}\n```\nThis calls {{it}} <now>.", "", [FOUND_WEATHER]),
    (f"```json\n[{WEATHER}, {TIMER}]\n```", "", [FOUND_WEATHER, FOUND_TIMER]),
    (f"```xml\n<tool_call>{WEATHER}</tool_call>\n```", "", [FOUND_WEATHER]),
    (WEATHER, "", [FOUND_WEATHER]),
    (f"  {WEATHER}\n{TIMER}", "", [FOUND_WEATHER, FOUND_TIMER]),
    (f"<tools>\n{WEATHER}\n</tools>", "", [FOUND_WEATHER]),
    (f"<tool_call>{WEATHER}", "", [FOUND_WEATHER]),
    (f"<tool_call>{WEATHER}<tool_call>{TIMER}", "", [FOUND_WEATHER, FOUND_TIMER]),
    ('<tool_call>{"name": "get_weather", "arguments": {"ci', "", [BROKEN]),
    ("<tool_call>nonsense</tool_call>", "", [BROKEN]),
    ('<tool_call>{"name": "fly", "arguments": {}}</tool_call>', "", [("fly", "{}")]),
    ('<tool_call>{"name": "fly"}</tool_call>', "", [BROKEN]),
    (
        '<tool_call>{"name": "fly", "parameters": "{\\"up\\": 1}"}</tool_call>',
        "",
        [("fly", '{"up":1}')],
    ),
    (
        '{"type": "function", "function": {"name": "set_timer", "arguments": {}}}',
        "",
        [("set_timer", "{}")],
    ),
    ('{"name": "Bob", "age": 3}', '{"name": "Bob", "age": 3}', []),
    ("```python\nprint({})\n```\nDone.", "```python\nprint({})\n```\nDone.", []),
    ('```json\n{"a": 1}\n``` and `b`', '```json\n{"a": 1}\n``` and `b`', []),
    ("Use < or <b> here", "Use < or <b> here", []),
    ("{not json", "{not json", []),
    ("``` <b>bold</b> ```", "``` <b>bold</b> ```", []),
    ("a ``", "a ``", []),
    (f"```\n<tool_call>{WEATHER}", "", [FOUND_WEATHER]),
    (f'{WEATHER} [1, 2] {{"name": "look"', "", [FOUND_WEATHER]),
    (f"{WEATHER} and so on <b> {{ {TIMER}", "", [FOUND_WEATHER]),
    (f"<tool_call>[[{WEATHER}]]</tool_call>", "", [BROKEN]),
    ("<tool_call>" + "[" * 9 + "]</tool_call>", "", [BROKEN]),
    ("", "", []),
]


def read(pieces: list[str], tools: Tools = TOOLS) -> tuple[str, list[Call]]:
    reader = ToolTextReader(tools)
    outputs = [output for piece in pieces for output in reader.feed(piece)]
    outputs += reader.finish()
    calls = [output for output in outputs if isinstance(output, ToolCallDelta)]
    assert [call.index for call in calls] == list(range(len(calls)))
    text = "".join(output.text for output in outputs if isinstance(output, TextDelta))
    return text, [(call.name, call.arguments) for call in calls]


@pytest.mark.parametrize(("written", "text", "calls"), CASES)
def test_calls_are_found_and_only_text_is_left(written: str, text: str, calls: list[Call]) -> None:
    assert read([written]) == (text, calls)


@given(case=st.sampled_from(CASES), cuts=st.lists(st.integers(0, 200), max_size=8))
def test_any_cut_gives_the_same(case: tuple[str, str, list[Call]], cuts: list[int]) -> None:
    written, text, calls = case
    places = sorted({0, *(min(cut, len(written)) for cut in cuts), len(written)})
    pieces = [written[a:b] for a, b in itertools.pairwise(places)]
    assert read(pieces) == (text, calls)


@given(written=st.text(alphabet=st.sampled_from('a {}[]"`<>/tool_cal:,\n'), max_size=60))
def test_noise_ends_and_loses_no_text_without_a_call(written: str) -> None:
    whole = read([written])
    assert whole == read(list(written))
    if not whole[1]:
        assert whole[0] == written


def test_text_is_not_held_back_for_nothing() -> None:
    reader = ToolTextReader(TOOLS)
    assert list(reader.feed("Hello,")) == [TextDelta("Hello,")]
    assert list(reader.feed(" there <")) == [TextDelta(" there")]
    assert list(reader.feed("b")) == [TextDelta(" <b")]


def test_without_functions_everything_is_text() -> None:
    assert read([f"<tool_call>{WEATHER}</tool_call>"], Tools())[1] == []


def test_a_call_without_an_end_is_not_waited_for_for_ever() -> None:
    reader = ToolTextReader(TOOLS)
    outputs = list(reader.feed('<tool_call>{"name": "' + "x" * LONGEST_CALL_CHARS))
    assert outputs == [ToolCallDelta(0)]


def test_the_form_of_a_call_allows_what_may_be_called_and_nothing_else() -> None:
    look = ToolSpec("look", "", '{"type":"object","properties":{"at":{"type":"string"}}}')
    both = Tools((look, ToolSpec("go")), "required")
    names = [
        each["properties"]["name"]["const"] for each in json.loads(schema_of_call(both))["anyOf"]
    ]
    assert names == ["look", "go"]
    only = json.loads(schema_of_call(Tools((look, ToolSpec("go")), "required", "look")))
    assert only["properties"]["name"] == {"const": "look"}
    assert only["properties"]["arguments"]["properties"] == {"at": {"type": "string"}}
