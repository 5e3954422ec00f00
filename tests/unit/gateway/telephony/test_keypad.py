from __future__ import annotations

from duologue.gateway.telephony.keypad import MAX_KEYS, Keypad


def test_a_pause_ends_what_is_typed() -> None:
    keypad = Keypad(2.0)
    assert keypad.next_deadline() is None
    assert keypad.on_timer(0.0) is None
    assert keypad.press("4", 10.0) is None
    assert keypad.press("2", 11.0) is None
    assert keypad.next_deadline() == 13.0
    assert keypad.on_timer(12.9) is None
    assert keypad.on_timer(13.0) == "42"
    assert keypad.next_deadline() is None
    assert keypad.on_timer(99.0) is None


def test_the_hash_key_ends_it_at_once_and_belongs_to_it() -> None:
    keypad = Keypad(2.0)
    keypad.press("*", 0.0)
    assert keypad.press("#", 0.1) == "*#"
    assert keypad.press("#", 0.2) == "#"


def test_who_never_pauses_is_taken_at_his_word_some_time() -> None:
    keypad = Keypad(2.0)
    entries = [keypad.press("1", 0.0) for _ in range(MAX_KEYS)]
    assert entries == [None] * (MAX_KEYS - 1) + ["1" * MAX_KEYS]


def test_what_is_no_key_is_passed_over() -> None:
    keypad = Keypad(2.0)
    for key in ("", "12", "x", "ü", "a"):
        assert keypad.press(key, 0.0) is None
    assert keypad.next_deadline() is None
