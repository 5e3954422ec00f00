from __future__ import annotations

from duologue.commands.backoff import FIRST_S, LONGEST_S, STEADY_S, Backoff


def test_each_death_in_a_row_costs_twice_as_much_up_to_a_limit() -> None:
    backoff = Backoff()
    waits = [backoff.after(0.5) for _ in range(10)]
    assert waits[:3] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S]
    assert waits[-1] == LONGEST_S


def test_what_lived_for_a_while_is_started_again_at_once() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.after(0.5)
    assert backoff.after(STEADY_S) == FIRST_S
