from __future__ import annotations

from duologue.engines.payloads import ChatMessage
from duologue.engines.runners.llm.slots import Slot, best_slot

OPENING = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hi."))


def talk(*texts: str) -> tuple[ChatMessage, ...]:
    roles = ("user", "assistant")
    said = (ChatMessage(roles[n % 2], text) for n, text in enumerate(texts))
    return (*OPENING, *said)


def test_a_conversation_goes_back_to_its_slot() -> None:
    mine = Slot(0, talk("What is red?", "A colour."), used=1)
    other = Slot(1, talk("What is four?", "A number."), used=2)
    assert best_slot([mine, other], talk("What is red?", "A colour.", "And blue?"), 2) is mine
    assert best_slot([mine, other], talk("What is four?", "A number.", "Five?"), 2) is other


def test_a_new_conversation_takes_no_slot_that_another_will_come_back_to() -> None:
    mine = Slot(0, talk("What is red?", "A colour of blood and wine and roses."), used=1)
    empty = Slot(1)
    assert best_slot([mine, empty], talk("What is four?"), 1) is empty


def test_a_slot_that_holds_just_the_opening_is_best_for_a_new_conversation() -> None:
    warm, empty = Slot(0, OPENING, used=1), Slot(1)
    assert best_slot([empty, warm], talk("Hello."), 1) is warm


def test_a_conversation_that_never_came_back_is_given_up() -> None:
    ended = Slot(0, talk("Tell me a very long story.", "Once upon a time. " * 20), used=1)
    active = Slot(1, talk("And now?", "Now it is five."), used=40)
    assert best_slot([ended, active], talk("Hello."), 40) is ended


def test_after_the_oldest_were_left_out_the_conversation_is_still_recognised() -> None:
    mine = Slot(0, talk("one", "two", "three", "four", "five", "six"), used=1)
    other = Slot(1, OPENING, used=2)
    assert best_slot([mine, other], talk("three", "four", "five", "six", "seven"), 2) is mine


def test_the_heard_part_of_an_answer_counts() -> None:
    mine = Slot(0, talk("Story?", "Once upon a time there was a king."), used=2)
    other = Slot(1, talk("Story?", "No, never."), used=1)
    assert best_slot([mine, other], talk("Story?", "Once upon a time...", "Stop"), 2) is mine


def test_busy_slots_are_not_taken() -> None:
    assert best_slot([Slot(0, busy=True), Slot(1)], OPENING, 0).index == 1
    assert best_slot([Slot(0, busy=True)], OPENING, 0) is None


def test_of_equals_the_one_unused_for_longest_is_taken() -> None:
    assert best_slot([Slot(0, used=5), Slot(1, used=3)], OPENING, 5).index == 1
