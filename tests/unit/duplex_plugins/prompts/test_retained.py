"""What of a long conversation stays in the prompt."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import LimitExceeded
from duologue.duplex_plugins.prompts.retained import retained, tokens
from duologue.duplex_plugins.retention import Retention
from duologue.engines.payloads import ChatMessage, ToolCall

ROOM = 200


def exchange(number: int, *, calls: bool = False, chars: int = 60) -> list[ChatMessage]:
    asked = ChatMessage("user", f"q{number:03} " + "x" * chars)
    answered = ChatMessage("assistant", f"a{number:03} " + "x" * chars)
    if not calls:
        return [asked, answered]
    call = ToolCall(f"c{number}", "look", "{}")
    return [
        asked,
        ChatMessage("assistant", "", calls=(call,)),
        ChatMessage("tool", "seen", call_id=call.call_id),
        answered,
    ]


def talk(count: int, *, calls: bool = False) -> list[ChatMessage]:
    return [m for number in range(count) for m in exchange(number, calls=calls)]


def first(messages: list[ChatMessage]) -> str:
    return messages[0].content[:4]


def test_what_fits_stays() -> None:
    for retention in (Retention(), Retention(keep=0.5), Retention(allowed=False)):
        assert retained(talk(2), ROOM, retention) == talk(2)
        assert retained([], ROOM, retention) == []


def test_where_nothing_may_be_left_out_it_is_told() -> None:
    with pytest.raises(LimitExceeded, match="truncation is disabled") as refusal:
        retained(talk(20), ROOM, Retention(allowed=False))
    assert refusal.value.code == "context_length_exceeded"


def test_the_clients_own_limit_counts_where_it_is_stricter() -> None:
    assert len(retained(talk(4), ROOM, Retention(keep=1.0, max_tokens=100))) == 4
    assert len(retained(talk(9), ROOM, Retention(keep=1.0, max_tokens=10_000))) == 8


def test_a_share_is_kept_and_prompts_begin_alike_until_it_is_used_up() -> None:
    starts = [first(retained(talk(count), ROOM, Retention(keep=0.5))) for count in range(1, 40)]
    assert starts == sorted(starts)
    changes = sum(a != b for a, b in itertools.pairwise(starts))
    every_time = sum(
        a != b
        for a, b in itertools.pairwise(
            first(retained(talk(count), ROOM, Retention(keep=1.0))) for count in range(1, 40)
        )
    )
    assert changes <= every_time / 2


def test_just_after_something_was_left_out_no_more_than_the_share_is_used() -> None:
    kept = [retained(talk(count), ROOM, Retention(keep=0.5)) for count in range(1, 40)]
    for before, after in itertools.pairwise(kept):
        assert tokens(after) <= ROOM
        if first(before) != first(after):
            assert tokens(after) <= ROOM / 2


@given(
    shape=st.lists(st.tuples(st.booleans(), st.integers(0, 400)), min_size=1, max_size=30),
    keep=st.one_of(st.none(), st.floats(0, 1)),
    ends=st.integers(1, 4),
)
def test_a_call_never_loses_its_output_and_the_newest_stays(
    shape: list[tuple[bool, int]], keep: float | None, ends: int
) -> None:
    messages = [
        m
        for number, (calls, chars) in enumerate(shape)
        for m in exchange(number, calls=calls, chars=chars)
    ]
    last = len(messages) - len(exchange(0, calls=shape[-1][0]))
    messages = messages[: last + ends]
    if messages[-1].calls:
        messages.append(ChatMessage("tool", "x" * 900, call_id=messages[-1].calls[0].call_id))
    kept = retained(messages, ROOM, Retention(keep=keep))
    assert kept[-1].role == messages[-1].role
    for before, message in itertools.pairwise([ChatMessage("system", ""), *kept]):
        assert (message.role == "tool") == bool(before.calls)
        if message.role == "tool":
            assert message.call_id == before.calls[0].call_id
    assert not kept[-1].calls


def test_an_exchange_that_is_too_long_by_itself_is_shortened_in_all_its_parts() -> None:
    call = ToolCall("c", "look", "{}")
    messages = [
        ChatMessage("user", "Look!"),
        ChatMessage("assistant", "", calls=(call,)),
        ChatMessage("tool", "the beginning" + "x" * 9000, call_id="c"),
    ]
    kept = retained(messages, ROOM, Retention())
    assert [message.role for message in kept] == ["user", "assistant", "tool"]
    assert kept[0].content == "Look!"
    assert kept[2].content.startswith("the beginning")
    assert tokens(kept) <= ROOM * 1.1


@pytest.mark.parametrize("keep", [None, 0.5])
def test_instructions_that_leave_no_room_leave_nothing_to_shorten(keep: float | None) -> None:
    assert retained([], -1000.0, Retention(keep=keep)) == []


def seeing(number: int, pictures: int, chars: int = 10) -> list[ChatMessage]:
    asked, answered = exchange(number, chars=chars)
    images = tuple(f"{number}.{at}" for at in range(pictures))
    return [ChatMessage("user", asked.content, images=images), answered]


def test_pictures_take_room_too() -> None:
    blind = [message for number in range(6) for message in exchange(number, chars=10)]
    shown = [message for number in range(6) for message in seeing(number, 1)]
    assert retained(blind, ROOM, Retention(keep=1.0), 100) == blind
    assert retained(shown, ROOM, Retention(keep=1.0), 100) == shown[-2:]
    assert tokens(shown, 100) == pytest.approx(tokens(blind) + 600)
    with pytest.raises(LimitExceeded):
        retained(shown, ROOM, Retention(allowed=False), 100)


def test_of_too_many_pictures_the_newest_stay_and_one_in_any_case() -> None:
    last = [seeing(0, 5)[0]]
    (kept,) = retained(last, ROOM, Retention(), 90)
    assert (kept.content, kept.images) == (last[0].content, ("0.3", "0.4"))
    (kept,) = retained(last, ROOM, Retention(), 1000)
    assert (kept.content, kept.images) == (last[0].content, ("0.4",))


def test_a_second_that_was_heard_counts_as_thirteen_tokens() -> None:
    heard = ChatMessage("user", "", recordings=(bytes(32_000), bytes(32_000)))
    assert tokens([heard]) - tokens([ChatMessage("user", "")]) == pytest.approx(26)


def test_of_too_many_recordings_the_newest_stay_and_one_in_any_case() -> None:
    turns = tuple(bytes([number]) * 32_000 for number in range(4))
    heard = [ChatMessage("user", "", recordings=turns)]
    assert retained(heard, 45, Retention())[0].recordings == turns[-3:]
    assert retained(heard, 1, Retention())[0].recordings == turns[-1:]
    assert retained(heard, 100, Retention()) == heard
