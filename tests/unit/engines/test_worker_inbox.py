from __future__ import annotations

import threading

from duologue.engines.worker_inbox import WorkerInbox
from tests.patience import PATIENCE_S


def test_items_come_out_in_order_and_once() -> None:
    inbox: WorkerInbox[int] = WorkerInbox()
    inbox.put((1, 2))
    inbox.put((3,))
    assert inbox.take(None) == [1, 2, 3]
    assert inbox.take(0) == []


def test_without_items_it_waits_no_longer_than_it_may() -> None:
    inbox: WorkerInbox[int] = WorkerInbox()
    assert inbox.take(0) == []
    assert inbox.take(0.001) == []


def test_an_old_signal_does_not_hide_a_later_one() -> None:
    inbox: WorkerInbox[int] = WorkerInbox()
    inbox.put((1,))
    assert inbox.take(0) == [1]  # the signal of this put stays behind
    assert inbox.take(None) == []  # and is taken here, once
    inbox.put((2,))
    assert inbox.take(None) == [2]


def test_a_sleeping_taker_is_woken_by_any_of_many_senders() -> None:
    inbox: WorkerInbox[int] = WorkerInbox()
    taken: list[int] = []

    def take_all() -> None:
        while len(taken) < 4000:
            taken.extend(inbox.take(None))

    def send(first: int) -> None:
        for number in range(first, first + 1000):
            inbox.put((number,))

    taker = threading.Thread(target=take_all)
    senders = [threading.Thread(target=send, args=(first,)) for first in range(0, 4000, 1000)]
    taker.start()
    for sender in senders:
        sender.start()
    for thread in (*senders, taker):
        thread.join(timeout=PATIENCE_S)
    assert not taker.is_alive()
    assert sorted(taken) == list(range(4000))
    for first in range(0, 4000, 1000):
        from_one = [number for number in taken if first <= number < first + 1000]
        assert from_one == sorted(from_one)


def test_it_tells_whether_anything_waits() -> None:
    inbox: WorkerInbox[int] = WorkerInbox()
    assert inbox.is_empty
    inbox.put([1])
    assert not inbox.is_empty
    inbox.take(0)
    assert inbox.is_empty
