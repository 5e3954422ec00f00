from __future__ import annotations

import asyncio

import pytest

from duologue.clients.errors import CallError, CommandRefused, ConnectionLost
from duologue.clients.replies import Replies
from duologue.core.errors import LimitExceeded
from duologue.protocol.events import AudioCleared, AudioCommitted
from tests.fakes.server import refusal


def committed(event: object) -> AudioCommitted | None:
    return event if isinstance(event, AudioCommitted) else None


A = AudioCommitted(previous_item_id=None, item_id="a")
B = AudioCommitted(previous_item_id=None, item_id="b")


async def test_each_event_answers_the_oldest_that_waits_for_it() -> None:
    replies = Replies()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(replies.wait(["1"], committed))
        second = group.create_task(replies.wait(["2"], committed))
        await asyncio.sleep(0)
        for event in (AudioCleared(), A, B):
            replies.offer(event)
    assert (first.result(), second.result()) == (A, B)
    assert len(replies) == 0


async def test_an_error_that_names_a_command_is_raised_to_who_sent_it() -> None:
    replies = Replies()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(replies.wait(["1"], committed))
        second = group.create_task(caught(replies.wait(["2", "3"], committed)))
        await asyncio.sleep(0)
        for event in (refusal(None), refusal("9"), refusal("3"), A):
            replies.offer(event)
    assert first.result() == A
    assert isinstance(second.result(), CommandRefused)


async def test_the_end_of_the_call_is_raised_to_all() -> None:
    replies = Replies()
    lost = ConnectionLost("gone")
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(caught(replies.wait([], committed))) for _ in range(2)]
        await asyncio.sleep(0)
        replies.end(lost)
    assert [task.result() for task in waiting] == [lost, lost]


async def test_one_who_gives_up_is_forgotten() -> None:
    replies = Replies(max_waiting=1)
    task = asyncio.ensure_future(replies.wait([], committed))
    await asyncio.sleep(0)
    with pytest.raises(LimitExceeded, match="1 commands wait"):
        await replies.wait([], committed)
    task.cancel()
    await asyncio.wait([task])
    assert len(replies) == 0


async def caught(work: object) -> BaseException | None:
    try:
        await work  # type: ignore[misc]
    except CallError as exc:
        return exc
    return None
