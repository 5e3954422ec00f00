from __future__ import annotations

import random

from duologue.core.ids import id_maker
from duologue.hosts.messages import Status
from duologue.hosts.routing import by_room, owner_of, ranked_owners, tag_of, tagged_ids


def status(room: int, *, loaded: bool = True, accepting: bool = True, waiting: int = 0) -> Status:
    return Status(
        loaded=loaded,
        accepting=accepting,
        sessions=10 - room,
        max_sessions=10,
        waiting=waiting,
    )


def test_a_session_says_which_host_it_is_of_and_stays_within_what_clients_accept() -> None:
    make = tagged_ids(id_maker(random.Random(1)), "abc123")
    session_id = make("sess")
    assert tag_of(session_id) == "abc123"
    assert len(session_id) <= 32
    assert tag_of(make("item")) is None
    assert tag_of(id_maker()("sess")) is None
    assert tag_of("sess_short_x") is tag_of("") is None


def test_new_calls_go_where_there_is_most_room_and_to_the_own_machine_among_equals() -> None:
    assert by_room([status(3), None, status(5), status(3)]) == [2, 0, 3]
    assert by_room([status(0), status(4, accepting=False), status(4, loaded=False)]) == []
    assert by_room([status(4, waiting=1), status(1)]) == [1], "a place is for those who wait for it"


def test_each_key_is_counted_by_one_host_and_few_move_when_one_goes() -> None:
    names = [f"key-{number}" for number in range(200)]
    tags = ["a", "b", "c"]
    before = {name: tags[owner_of(name, tags)] for name in names}
    again = {name: tags[::-1][owner_of(name, tags[::-1])] for name in names}
    assert before == again
    after = {name: ["a", "b"][owner_of(name, ["a", "b"])] for name in names}
    assert all(after[name] == host for name, host in before.items() if host != "c")
    assert len(set(before.values())) == 3
    for name in names:
        ranked = [tags[place] for place in ranked_owners(name, tags)]
        assert sorted(ranked) == tags
        assert ranked[0] == before[name]
        if before[name] == "c":
            assert ranked[1] == after[name]
