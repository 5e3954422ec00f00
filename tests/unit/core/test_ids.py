"""Identifiers."""

from __future__ import annotations

import random
import re

from duologue.core.ids import id_maker


def test_the_same_seed_gives_the_same_ids() -> None:
    first, second = (id_maker(random.Random(7)) for _ in range(2))
    assert [first("item") for _ in range(3)] == [second("item") for _ in range(3)]


def test_ids_say_what_they_name_and_stay_below_what_clients_accept() -> None:
    made = id_maker()("resp")
    assert re.fullmatch(r"resp_[0-9a-z]{20}", made)
    assert len(made) < 32


def test_ids_do_not_repeat() -> None:
    make = id_maker()
    assert len({make("x") for _ in range(1000)}) == 1000
