from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.gateway.telephony.playout import MAX_MARKS, Heard, Mark, PhonePlayout, Play

LEAD_S = 0.2
FRAME = 160


def speech(ms: int, fill: int = 1) -> bytes:
    return bytes([fill]) * (ms * 8)


def playout() -> PhonePlayout:
    return PhonePlayout(LEAD_S, b"\xff")


def sound(steps: list[Play | Mark]) -> bytes:
    return b"".join(step.payload for step in steps if isinstance(step, Play))


def names(steps: list[Play | Mark]) -> list[str]:
    return [step.name for step in steps if isinstance(step, Mark)]


def test_sound_goes_out_by_the_lead_and_then_as_it_is_played() -> None:
    phone = playout()
    phone.append("r", "i", speech(1000))
    assert len(sound(phone.due(100.0))) == 10 * FRAME
    assert phone.due(100.0) == []
    assert phone.next_deadline() == pytest.approx(100.0)
    assert len(sound(phone.due(100.019))) == FRAME
    assert len(sound(phone.due(100.1))) == 4 * FRAME
    assert phone.waiting_ms == 1000 - 15 * 20


def test_a_mark_behind_each_tenth_of_a_second_tells_what_was_heard() -> None:
    phone = playout()
    phone.append("r", "i", speech(250))
    phone.complete("r")
    first = names(phone.due(0.0))
    second = names(phone.due(0.1))
    assert [len(first), len(second)] == [2, 1]
    assert [phone.mark_played(name) for name in (*first, *second)] == [
        Heard("i", 100),
        Heard("i", 200),
        Heard("i", 250),
    ]
    assert phone.mark_played(first[0]) is None
    assert phone.mark_played("unknown") is None
    assert phone.next_deadline() is None


def test_a_frame_that_is_not_full_waits_for_more_and_at_the_end_for_nothing() -> None:
    phone = playout()
    phone.append("r", "i", speech(25))
    assert len(sound(phone.due(0.0))) == FRAME
    assert phone.next_deadline() is None
    phone.append("r", "i", speech(5))
    assert phone.due(0.0) == []
    phone.complete("r")
    assert sound(phone.due(0.0)) == speech(10) + b"\xff" * 80


def test_one_response_follows_the_other() -> None:
    phone = playout()
    phone.append("a", "i", speech(40, 1))
    phone.append("b", "j", speech(40, 2))
    assert sound(phone.due(0.0)) == speech(40, 1)
    phone.complete("a")
    assert sound(phone.due(0.0)) == speech(40, 2)


def test_a_response_that_is_stopped_is_heard_no_further() -> None:
    phone = playout()
    phone.append("r", "i", speech(1000))
    marks = names(phone.due(0.0))
    assert phone.stop("r")
    assert phone.waiting_ms == 0
    assert phone.due(0.5) == []
    # The carrier answers marks of what it has forgotten: that is not heard.
    assert [phone.mark_played(name) for name in marks] == [None, None]
    # What comes next begins at once.
    phone.append("s", "j", speech(400, 2))
    assert len(sound(phone.due(0.6))) == 10 * FRAME


def test_what_was_never_sent_need_not_be_forgotten() -> None:
    phone = playout()
    phone.append("r", "i", speech(10))
    phone.due(0.0)
    assert not phone.stop("r")
    assert not phone.stop("r")


def test_an_item_that_was_sent_whole_is_cut_while_it_is_played() -> None:
    phone = playout()
    phone.append("r", "i", speech(150))
    phone.complete("r")
    (first, last) = names(phone.due(0.0))
    assert phone.mark_played(first) == Heard("i", 100)
    assert not phone.cut("other")
    assert phone.cut("i")
    assert not phone.cut("i")
    assert phone.mark_played(last) is None


def test_an_item_that_was_heard_to_its_end_cannot_be_cut() -> None:
    phone = playout()
    phone.append("r", "i", speech(100))
    phone.complete("r")
    (mark,) = names(phone.due(0.0))
    phone.mark_played(mark)
    assert not phone.cut("i")


def test_an_item_whose_speech_still_waits_is_cut_with_it() -> None:
    phone = playout()
    phone.append("r", "i", speech(1000))
    phone.due(0.0)
    assert phone.cut("i")
    assert phone.waiting_ms == 0


def test_a_carrier_that_answers_no_mark_fills_no_memory() -> None:
    phone = playout()
    phone.append("r", "i", speech(60_000))
    made = [name for tick in range(3000) for name in names(phone.due(tick * 0.02))]
    assert len(made) == MAX_MARKS
    assert phone.waiting_ms == 0


@given(st.lists(st.tuples(st.integers(1, 700), st.floats(0, 0.3)), max_size=20))
def test_all_that_is_said_is_played_once_and_in_order_and_never_far_ahead(
    pieces: list[tuple[int, float]],
) -> None:
    phone, now, sent, said, played_until = playout(), 0.0, b"", b"", 0.0
    for number, (size, wait) in enumerate(pieces):
        piece = bytes([number + 1]) * size
        said += piece
        phone.append("r", "i", piece)
        now += wait
        fresh = sound(phone.due(now))
        sent += fresh
        played_until = max(played_until, now) + len(fresh) / 8000
        assert played_until - now <= LEAD_S + 0.02 + 1e-9
    phone.complete("r")
    while phone.next_deadline() is not None:
        now += 0.02
        sent += sound(phone.due(now))
    assert sent.rstrip(b"\xff") == said
    assert len(sent) % FRAME == 0
