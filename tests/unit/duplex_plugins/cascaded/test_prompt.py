from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.duplex_plugins.cascaded.prompt import (
    callable_now,
    chat_request,
    opening,
    prefill_request,
)
from duologue.duplex_plugins.cascaded.settings import CascadedSettings, Example
from duologue.duplex_plugins.contract import ItemView, PluginConfig
from duologue.engines.payloads import ChatMessage, ToolCall, Tools, ToolSpec

SETTINGS = CascadedSettings(
    persona="Be brief.", examples=(Example(user="Hi.", assistant="Hello!"),), prompt_tokens=300
)
PLAIN = CascadedSettings(persona="Be brief.", examples=())
CONFIG = PluginConfig()


def conversation(*texts: str | None) -> tuple[ItemView, ...]:
    """The person first, then in turns."""
    return tuple(
        ItemView(id=str(index), role="user" if index % 2 == 0 else "assistant", text=text)
        for index, text in enumerate(texts)
    )


def said(messages: tuple[ChatMessage, ...]) -> list[str]:
    return [f"{message.role}: {message.content}" for message in messages]


def test_persona_and_examples_come_first_then_instructions_then_the_conversation() -> None:
    config = PluginConfig(instructions="Talk like a pirate.")
    request = chat_request(conversation("What is two plus two?"), config, SETTINGS)
    assert said(request.messages) == [
        "system: Be brief.",
        "user: Hi.",
        "assistant: Hello!",
        "system: Talk like a pirate.",
        "user: What is two plus two?",
    ]


def test_the_beginning_is_the_same_in_every_prompt() -> None:
    start = opening(SETTINGS)
    for config in (CONFIG, PluginConfig(instructions="Other.")):
        for view in (conversation("A?"), conversation("A?", "B.", "C?")):
            messages = chat_request(view, config, SETTINGS).messages
            assert messages[: len(start)] == start


def test_without_examples_there_is_one_system_message() -> None:
    request = chat_request(conversation("Hi"), PluginConfig(instructions="Rhyme."), PLAIN)
    assert said(request.messages) == ["system: Be brief.\n\nRhyme.", "user: Hi"]


def test_without_a_persona_the_instructions_stand_alone() -> None:
    settings = CascadedSettings(persona="", examples=())
    request = chat_request(conversation("Hi"), PluginConfig(instructions="Rhyme."), settings)
    assert said(request.messages) == ["system: Rhyme.", "user: Hi"]


def test_the_clients_limits_win_where_they_are_stricter() -> None:
    view = conversation("Hi")
    limit = SETTINGS.max_output_tokens
    assert chat_request(view, CONFIG, SETTINGS).max_tokens == limit
    assert chat_request(view, PluginConfig(max_output_tokens=5), SETTINGS).max_tokens == 5
    assert chat_request(view, PluginConfig(max_output_tokens=9999), SETTINGS).max_tokens == limit
    assert chat_request(view, PluginConfig(temperature=0.7), SETTINGS).temperature == 0.7


def test_reading_ahead_asks_for_no_answer() -> None:
    view = conversation("Hi", "Hello!")
    request = prefill_request(view, CONFIG, SETTINGS)
    assert request.max_tokens == 0
    known = chat_request(view, CONFIG, SETTINGS).messages
    assert request.messages == (*known, ChatMessage("user", ""))


def test_reading_ahead_ends_with_what_the_person_has_said_so_far() -> None:
    view = conversation("Hi", "Hello!", "What is")
    request = prefill_request(view, CONFIG, SETTINGS)
    assert request.messages == chat_request(view, CONFIG, SETTINGS).messages


def exchanges(count: int, chars: int) -> tuple[ItemView, ...]:
    texts = [f"{'q' if n % 2 == 0 else 'a'}{n // 2:03} {'x' * chars}" for n in range(2 * count)]
    return conversation(*texts, "last")


def test_a_long_conversation_loses_its_oldest_exchanges_whole() -> None:
    messages = chat_request(exchanges(30, 60), CONFIG, SETTINGS).messages
    kept = messages[len(opening(SETTINGS)) :]
    assert messages[: len(opening(SETTINGS))] == opening(SETTINGS)
    assert kept[-1].content == "last"
    assert kept[0].role == "user"
    assert [m.role for m in kept] == ["user", "assistant"] * (len(kept) // 2) + ["user"]
    assert 1 < len(kept) < 20


def test_exchanges_are_forgotten_several_at_a_time_so_that_prompts_begin_alike() -> None:
    starts = [
        chat_request(exchanges(count, 60), CONFIG, SETTINGS).messages[3].content[:4]
        for count in range(4, 40)
    ]
    changes = sum(a != b for a, b in itertools.pairwise(starts))
    assert starts == sorted(starts)
    assert 5 <= changes <= 9


def test_a_single_message_that_is_too_long_keeps_its_end() -> None:
    messages = chat_request(conversation("x" * 5000 + " the end"), CONFIG, SETTINGS).messages
    assert messages[-1].content.endswith(" the end")
    assert len(messages[-1].content) < 1200


@pytest.mark.parametrize("instructions", ["", "x" * 5000])
def test_something_of_the_last_turn_is_always_left(instructions: str) -> None:
    config = PluginConfig(instructions=instructions)
    messages = chat_request(exchanges(30, 60), config, SETTINGS).messages
    assert messages[-1] == ChatMessage("user", "last")


ITEMS = st.lists(
    st.builds(
        ItemView,
        id=st.uuids().map(str),
        role=st.sampled_from(["user", "assistant", "system"]),
        text=st.one_of(st.none(), st.text("ab .", max_size=400)),
        interrupted=st.booleans(),
    ),
    max_size=40,
)


@given(ITEMS)
def test_roles_alternate_and_the_prompt_fits(view: list[ItemView]) -> None:
    messages = chat_request(view, CONFIG, SETTINGS).messages
    rest = messages[len(opening(SETTINGS)) :]
    assert all(a.role != b.role for a, b in itertools.pairwise(rest))
    assert all(message.content.strip() == message.content != "" for message in rest[:-1])
    assert sum(len(message.content) for message in messages) < 300 * 3.5


# Functions

OFFER = Tools((ToolSpec("look"),))
OFFERING = PluginConfig(tools=OFFER)


def call(number: int) -> ItemView:
    return ItemView(
        id=f"c{number}", role="assistant", text="", call=ToolCall(f"c{number}", "look", "{}")
    )


def output(number: int, text: str | None = "seen") -> ItemView:
    return ItemView(id=f"o{number}", role="tool", text=text, call_id=f"c{number}")


def test_where_functions_are_offered_no_example_shows_how_not_to_call() -> None:
    view = conversation("Look!")
    offered = chat_request(view, OFFERING, SETTINGS)
    assert said(offered.messages) == ["system: Be brief.", "user: Look!"]
    assert offered.tools == OFFER
    assert prefill_request(view, OFFERING, SETTINGS).messages == offered.messages
    without = chat_request(view, PluginConfig(tools=Tools(OFFER.functions, "none")), SETTINGS)
    assert len(without.messages) == 4


def test_after_enough_calls_in_a_row_the_model_has_to_answer() -> None:
    once = (*conversation("Look!"), call(1), call(2), output(1), output(2))
    twice = (*once, call(3), output(3))
    two = CascadedSettings(call_rounds=2)
    assert callable_now(conversation("Look!"), OFFER, SETTINGS).choice == "auto"
    assert callable_now(once, OFFER, SETTINGS).choice == "none"
    assert callable_now(once, OFFER, two).choice == "auto"
    assert callable_now(twice, OFFER, two).choice == "none"
    # What the client asks for by name counts more; and new words begin anew.
    forced = Tools(OFFER.functions, "required")
    assert callable_now(twice, forced, SETTINGS) == forced
    assert callable_now((*once, *conversation("And?")), OFFER, SETTINGS).choice == "auto"


def test_functions_take_room_of_the_conversation() -> None:
    big = PluginConfig(tools=Tools((ToolSpec("look", "x" * 600),)))
    view = exchanges(30, 60)
    assert len(chat_request(view, big, PLAIN_SHORT).messages) < len(
        chat_request(view, CONFIG, PLAIN_SHORT).messages
    )


PLAIN_SHORT = CascadedSettings(persona="Be brief.", examples=(), prompt_tokens=300)
