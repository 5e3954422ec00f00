from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.core.errors import CapacityError, RateLimited
from duologue.engines.ports import WorkClass
from duologue.hosts.class_slots import LONGEST_RETRY_S, SHORTEST_RETRY_S, ClassSlots, Ticket

REALTIME, INTERACTIVE, BATCH = WorkClass.REALTIME, WorkClass.INTERACTIVE, WorkClass.BATCH
WEIGHTS = {REALTIME: 1, INTERACTIVE: 2, BATCH: 1}


def filled(slots: ClassSlots, work: WorkClass, now: float = 0.0) -> list[Ticket]:
    """Ask for slots of a class until one is refused."""
    begun: list[Ticket] = []
    while True:
        ticket = Ticket(work)
        try:
            slots.ask(ticket, now, may_wait=False)
        except CapacityError:
            return begun
        begun.append(ticket)


def queue_of(slots: ClassSlots, work: WorkClass, count: int) -> list[Ticket]:
    tickets = [Ticket(work) for _ in range(count)]
    for ticket in tickets:
        assert not slots.ask(ticket, 0.0, may_wait=True)
    return tickets


class TestShares:
    def test_a_class_may_use_what_others_do_not_but_for_half_of_their_shares(self) -> None:
        slots = ClassSlots(16, 0, WEIGHTS)
        assert len(filled(slots, BATCH)) == 16 - 2 - 4
        assert len(filled(slots, INTERACTIVE)) == 4
        assert len(filled(slots, REALTIME)) == 2
        assert slots.taken.total() == 16

    def test_where_there_is_one_class_it_has_all(self) -> None:
        assert len(filled(ClassSlots(16, 0, {INTERACTIVE: 2}), INTERACTIVE)) == 16

    def test_a_class_without_a_share_has_what_is_left(self) -> None:
        slots = ClassSlots(16, 0, {INTERACTIVE: 1, BATCH: 1})
        assert len(filled(slots, REALTIME)) == 8

    def test_what_was_lent_comes_back_as_it_ends(self) -> None:
        slots = ClassSlots(16, 100, WEIGHTS)
        lent = filled(slots, BATCH)
        filled(slots, INTERACTIVE)
        filled(slots, REALTIME)
        later = [queue_of(slots, work, 20) for work in (BATCH, INTERACTIVE)]
        for ticket in lent[:4]:
            (begun,) = slots.leave(ticket, 1.0)
            assert begun is later[1].pop(0)
        assert (slots.taken[INTERACTIVE], slots.taken[BATCH]) == (8, 6)

    def test_the_refusal_says_what_is_kept(self) -> None:
        slots = ClassSlots(4, 0, {INTERACTIVE: 1, BATCH: 1})
        filled(slots, BATCH)
        with pytest.raises(CapacityError, match=r"3 requests of the class batch.*kept for other"):
            slots.ask(Ticket(BATCH), 0.0, may_wait=False)
        filled(slots, INTERACTIVE)
        with pytest.raises(CapacityError, match="4 requests are worked on, the limit is 4"):
            slots.ask(Ticket(BATCH), 0.0, may_wait=False)


class TestQueue:
    def test_who_has_waited_longest_is_next(self) -> None:
        slots = ClassSlots(1, 2, {INTERACTIVE: 1})
        (running,) = filled(slots, INTERACTIVE)
        first, second = queue_of(slots, INTERACTIVE, 2)
        with pytest.raises(CapacityError):
            slots.ask(Ticket(INTERACTIVE), 0.0, may_wait=True)
        assert slots.leave(running, 1.0) == [first]
        assert first.began_at == 1.0
        assert slots.leave(second, 1.0) == ()
        assert slots.leave(first, 2.0) == []
        assert (slots.taken.total(), slots.waiting) == (0, [])

    def test_who_was_queued_elsewhere_is_not_counted(self) -> None:
        slots = ClassSlots(1, 0, {BATCH: 1})
        (running,) = filled(slots, BATCH)
        job = Ticket(BATCH)
        assert not slots.ask(job, 0.0, may_wait=True, queued=0)
        assert slots.leave(running, 1.0) == [job]

    def test_the_wait_is_stated_from_how_long_requests_took(self) -> None:
        slots = ClassSlots(2, 10, {INTERACTIVE: 1})
        assert slots.expected_wait_s(INTERACTIVE) == SHORTEST_RETRY_S
        for ticket in filled(slots, INTERACTIVE):
            slots.leave(ticket, 10.0)
        filled(slots, INTERACTIVE)
        queue_of(slots, INTERACTIVE, 3)
        assert slots.expected_wait_s(INTERACTIVE) == pytest.approx(10.0 * 4 / 2)
        with pytest.raises(CapacityError) as refused:
            slots.ask(Ticket(INTERACTIVE), 0.0, may_wait=False)
        assert refused.value.retry_after_s == pytest.approx(10.0 * 4 / 2)
        queue_of(slots, INTERACTIVE, 7)
        for ticket in list(slots.waiting):
            slots.leave(ticket, 0.0)
        assert slots.expected_wait_s(INTERACTIVE) <= LONGEST_RETRY_S


class TestKeys:
    def test_a_key_has_so_many_and_others_go_on(self) -> None:
        slots = ClassSlots(10, 10, {INTERACTIVE: 1})
        mine = [Ticket(INTERACTIVE, "mine", 2) for _ in range(3)]
        assert [slots.ask(each, 0.0, may_wait=True) for each in mine] == [True, True, False]
        with pytest.raises(RateLimited, match=r"2 requests of this API key.*its limit is 2"):
            slots.ask(Ticket(INTERACTIVE, "mine", 2), 0.0, may_wait=False)
        other = Ticket(INTERACTIVE, "other", 2)
        assert slots.ask(other, 0.0, may_wait=False)
        assert slots.leave(other, 1.0) == []
        assert slots.leave(mine[0], 1.0) == [mine[2]]


@given(st.data())
def test_whatever_comes_and_goes_all_promises_hold(data: st.DataObject) -> None:
    weights = data.draw(
        st.dictionaries(st.sampled_from(WorkClass), st.integers(1, 5), min_size=1), "weights"
    )
    limit, queue = data.draw(st.integers(1, 12), "limit"), data.draw(st.integers(0, 6), "queue")
    slots = ClassSlots(limit, queue, weights)
    shares = {work: limit * weight / sum(weights.values()) for work, weight in weights.items()}
    kept = {work: int(share / 2) if len(weights) > 1 else 0 for work, share in shares.items()}
    begun: list[Ticket] = []
    for _ in range(data.draw(st.integers(1, 60), "events")):
        if data.draw(st.booleans(), "comes"):
            owner = data.draw(st.sampled_from("ab"), "owner")
            ticket = Ticket(data.draw(st.sampled_from(sorted(weights, key=str))), owner, 3)
            had_its_part = slots.taken[ticket.work] >= kept[ticket.work]
            of_owner = sum(each.owner == owner for each in begun)
            try:
                if slots.ask(ticket, 0.0, may_wait=data.draw(st.booleans(), "waits")):
                    begun.append(ticket)
            except CapacityError:
                assert had_its_part, "what is kept for a class is there for it"
            except RateLimited:
                assert of_owner == 3
        elif begun or slots.waiting:
            ticket = data.draw(st.sampled_from([*begun, *slots.waiting]), "leaves")
            following = slots.leave(ticket, 0.0)
            if ticket in begun:
                begun.remove(ticket)
            begun += following
        assert slots.taken.total() == len(begun) <= limit
        assert len(slots.waiting) <= queue
        assert all(sum(each.owner == owner for each in begun) <= 3 for owner in "ab")
        free = limit - len(begun)
        assert free >= sum(max(0, kept[work] - slots.taken[work]) for work in weights)
        owners = {each.owner for each in begun if sum(e.owner == each.owner for e in begun) == 3}
        if free > sum(max(0, kept[work] - slots.taken[work]) for work in weights):
            assert {each.owner for each in slots.waiting} <= owners, "nobody waits for nothing"


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(WorkClass), st.integers(1, 5), min_size=2), st.data())
def test_under_saturation_each_class_has_its_share(
    weights: dict[WorkClass, int], data: st.DataObject
) -> None:
    slots = ClassSlots(12, 1000, weights)
    running = []
    for work in data.draw(st.permutations(sorted(weights, key=str))):
        tickets = [Ticket(work) for _ in range(40)]
        running += [each for each in tickets if slots.ask(each, 0.0, may_wait=True)]
    for _ in range(24):
        ticket = running.pop(data.draw(st.integers(0, len(running) - 1)))
        running += slots.leave(ticket, 0.0)
    for work, weight in weights.items():
        assert slots.taken[work] == pytest.approx(12 * weight / sum(weights.values()), abs=2)
