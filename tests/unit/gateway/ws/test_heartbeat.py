from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.gateway.ws.heartbeat import STOOD_STILL_S, Beat, Heartbeat


def test_a_silent_peer_is_asked_after_the_interval_and_given_up_half_as_long_later() -> None:
    heart = Heartbeat(20.0, now=100.0)
    assert heart.next_deadline() == 120.0
    assert heart.on_timer(119.9) is Beat.NOTHING
    assert heart.on_timer(120.0) is Beat.PING
    assert heart.next_deadline() == 130.0
    assert heart.on_timer(129.9) is Beat.NOTHING
    assert heart.on_timer(130.0) is Beat.GIVE_UP


def test_any_byte_puts_it_all_off() -> None:
    heart = Heartbeat(20.0, now=100.0)
    heart.heard_at = 115.0
    assert heart.on_timer(120.0) is Beat.NOTHING
    assert heart.next_deadline() == 135.0
    assert heart.on_timer(135.0) is Beat.PING
    heart.heard_at = 140.0
    assert heart.on_timer(145.0) is Beat.NOTHING
    assert heart.next_deadline() == 160.0
    assert heart.on_timer(160.0) is Beat.PING


def test_a_byte_at_the_moment_of_the_question_is_not_its_answer() -> None:
    heart = Heartbeat(20.0, now=100.0)
    heart.heard_at = 100.0
    assert heart.on_timer(120.0) is Beat.PING
    heart.heard_at = 120.0
    assert heart.next_deadline() == 130.0


def test_a_process_that_stood_still_blames_nobody_and_asks_again() -> None:
    heart = Heartbeat(20.0, now=100.0)
    assert heart.on_timer(120.0) is Beat.PING
    assert heart.on_timer(132.0) is Beat.PING
    assert heart.on_timer(142.0) is Beat.GIVE_UP


@given(
    st.floats(0.1, 100),
    st.lists(st.tuples(st.sampled_from(["hear", "look"]), st.floats(0, 60)), max_size=60),
)
def test_nobody_is_given_up_unasked_or_before_its_time(
    interval_s: float, steps: list[tuple[str, float]]
) -> None:
    heart = Heartbeat(interval_s, now=0.0)
    now, heard, asked = 0.0, 0.0, None
    for what, pause in steps:
        now += pause
        if what == "hear":
            heart.heard_at = heard = now
            continue
        deadline = heart.next_deadline()
        beat = heart.on_timer(now)
        assert (beat is Beat.NOTHING) == (now < deadline)
        if beat is Beat.PING:
            again = asked is not None and asked >= heard and now > deadline + STOOD_STILL_S
            assert again or now >= heard + interval_s
            asked = now
            assert heart.next_deadline() > now
        if beat is Beat.GIVE_UP:
            assert asked is not None
            assert now <= deadline + STOOD_STILL_S
            assert asked >= heard
            assert now >= asked + interval_s / 2
            return
