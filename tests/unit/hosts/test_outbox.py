from __future__ import annotations

from duologue.hosts.messages import Applied, Attach, Beat, Played, Taken
from duologue.hosts.outbox import Outbox


class Scene:
    def __init__(self) -> None:
        self.woken = 0
        self.outbox = Outbox(self._wake)

    def _wake(self) -> None:
        self.woken += 1


def test_all_that_one_turn_says_is_one_write() -> None:
    scene = Scene()
    scene.outbox.put(Attach(1))
    scene.outbox.put(Beat())
    scene.outbox.taken(1, 10)
    assert scene.woken == 1
    assert scene.outbox.take() == [Attach(1), Beat(), Taken(1, 10)]
    assert scene.outbox.take() == []
    scene.outbox.applied(2, 5)
    assert scene.woken == 2
    assert scene.outbox.take() == [Applied(2, 5)]


def test_what_only_counts_is_added_up() -> None:
    outbox = Scene().outbox
    for size in (10, 20):
        outbox.taken(1, size)
        outbox.applied(1, size)
    outbox.taken(2, 7)
    assert outbox.take() == [Taken(1, 30), Taken(2, 7), Applied(1, 30)]


def test_of_what_was_played_the_latest_is_said_and_before_all_else() -> None:
    outbox = Scene().outbox
    outbox.put(Attach(1))
    outbox.played(1, "a", 20)
    outbox.played(1, "a", 40)
    outbox.played(1, "b", 20)
    assert outbox.take() == [Played(1, "a", 40), Played(1, "b", 20), Attach(1)]


def test_what_must_wait_for_the_write_is_called_then_and_what_it_says_goes_with_it() -> None:
    scene = Scene()
    scene.outbox.before_write(lambda: scene.outbox.put(Beat()))
    assert scene.woken == 1
    assert scene.outbox.take() == [Beat()]
    assert scene.woken == 1
