"""The engine's end, with a worker's over TCP; ``test_remote_worker`` has what only that does."""

from __future__ import annotations

import asyncio
import socket

from duologue.engines import framing
from duologue.engines.media_payloads import ImageData
from duologue.engines.messages import (
    Append,
    Cancel,
    JobEnded,
    JobOutput,
    Paused,
    ReaderGone,
    Report,
)
from duologue.engines.payloads import TextDelta
from duologue.engines.ports import Outcome
from duologue.engines.transport.apart import Lent
from duologue.engines.transport.remote_engine import RemotePayloads
from tests.patience import until
from tests.unit.engines.transport.remote_line import (
    HOST,
    SIZE,
    RemoteLine,
    bodies,
    elsewhere,
    image,
)

DONE = JobEnded("a", Outcome.COMPLETED)


async def test_large_payloads_go_past_the_link_both_ways_in_order_and_nothing_is_held() -> None:
    payloads = RemotePayloads()
    line = RemoteLine(payloads)
    for number in range(20):
        line.send(Append("a", image(number)), Append("a", TextDelta(str(number))))
        line.say(JobOutput("a", image(number)), JobOutput("a", TextDelta(str(number))))
        await until(lambda n=number: len(line.engine_got) == len(line.worker_got) == 2 * (n + 1))
    assert line.worker_got == [
        each
        for number in range(20)
        for each in (Append("a", image(number)), Append("a", TextDelta(str(number))))
    ]
    assert line.engine_got == [
        each
        for number in range(20)
        for each in (JobOutput("a", image(number)), JobOutput("a", TextDelta(str(number))))
    ]
    assert max(line.sizes) < 300
    await until(lambda: payloads.held_bytes == 0)
    await line.close()
    assert payloads.ends == set()


async def test_what_a_job_says_waits_for_its_payload_and_others_do_not() -> None:
    line = RemoteLine(RemotePayloads())
    other = JobOutput("b", TextDelta("at once"))
    line.say(JobOutput("a", image(1)), DONE, other, Paused())
    assert line.engine_got == [other, Paused()]
    await until(lambda: len(line.engine_got) == 4)
    assert line.engine_got[2:] == [JobOutput("a", image(1)), DONE]
    await line.close()


async def test_what_finds_no_room_goes_in_the_link_and_later_there_is_room_again() -> None:
    payloads = RemotePayloads()
    line = RemoteLine(payloads)
    line.to_engine_held_up = []
    line.send(*(Append("a", image(number, 400_000)) for number in range(4)))
    await until(lambda: len(line.worker_got) == 4)
    assert payloads.fill == 800_000 / SIZE
    assert line.engine.unread_bytes == 800_000
    assert max(line.sizes) > 400_000
    line.let_through()
    await until(lambda: payloads.held_bytes == 0)
    line.sizes.clear()
    line.send(Append("a", image(9, 400_000)))
    assert max(line.sizes) < 300
    await until(lambda: len(line.worker_got) == 5)
    await line.close()


async def test_a_payload_that_is_lost_fails_its_job_and_the_worker_is_told() -> None:
    line = RemoteLine(RemotePayloads())
    frames = line.worker.encode(Report([JobOutput("a", image(1))]))
    (_, rest) = bodies(frames)
    line.to_engine(elsewhere(frames[: -len(rest) - 4], generation=1))
    await until(lambda: bool(line.engine_got))
    (ended,) = line.engine_got
    assert isinstance(ended, JobEnded)
    assert (ended.outcome, ended.code) == (Outcome.FAILED, "payload_lost")
    assert line.worker_got == [Cancel("a")]
    await line.close()


async def test_a_worker_that_does_not_answer_fails_the_job_in_time() -> None:
    payloads = RemotePayloads(timeout_s=0.2)
    line = RemoteLine(payloads)
    frames = line.worker.encode(Report([JobOutput("a", image(1))]))
    await asyncio.to_thread(line.worker.close)
    line.to_engine(frames)
    await until(lambda: bool(line.engine_got))
    (ended,) = line.engine_got
    assert isinstance(ended, JobEnded)
    assert (ended.outcome, ended.code) == (Outcome.FAILED, "stage_timeout")
    await line.close()


async def test_what_a_cancelled_job_has_made_is_not_waited_for() -> None:
    with socket.create_server((HOST, 0)) as deaf:
        line = RemoteLine(RemotePayloads())
        place = f"tcp://{HOST}:{deaf.getsockname()[1]}"
        first, _ = bodies(line.worker.encode(Report([JobOutput("a", image(1))])))
        line.to_engine(elsewhere(framing.frame(first), place=place))
        ended = JobEnded("a", Outcome.CANCELLED)
        line.say(JobOutput("a", TextDelta("behind")), ended)
        line.say(JobOutput("b", image(2)), DONE)
        assert line.engine_got == []
        line.send(Cancel("a"))
        await until(lambda: len(line.engine_got) == 3)
        assert line.engine_got == [ended, DONE, JobOutput("b", image(2))]
        await line.close()


async def test_nothing_is_heard_of_a_worker_after_its_death() -> None:
    payloads = RemotePayloads()
    line = RemoteLine(payloads)
    frames = line.worker.encode(Report([JobOutput("a", image(1)), DONE]))
    await asyncio.to_thread(line.worker.close)
    line.to_engine(frames)
    line.engine.worker_died()
    line.engine.worker_died()
    assert payloads.held_bytes == 0
    assert payloads.ends == set()
    other = RemoteLine(payloads)
    other.say(JobOutput("a", image(2)))
    await until(lambda: bool(other.engine_got))
    assert line.engine_got == []
    await other.close()


async def test_one_that_was_given_up_while_it_was_opened_leaves_nothing() -> None:
    payloads = RemotePayloads()
    end = payloads.enlist("zeromq", "stage/0", SIZE, relays=False)
    end.worker_died()
    await asyncio.to_thread(end.open_at, "127.0.0.1")
    assert end.held_bytes == 0
    assert payloads.ends == set()


class TestRelays:
    async def test_what_one_worker_wrote_goes_straight_to_the_next(self) -> None:
        payloads = RemotePayloads()
        first, second = RemoteLine(payloads, relays=True), RemoteLine(payloads)
        first.say(JobOutput("a", image(7)))
        (output,) = first.engine_got
        assert isinstance(output, JobOutput)
        assert isinstance(output.payload, ImageData)
        assert isinstance(output.payload.data, Lent)
        first.engine_got.clear()
        second.send(Append("a", output.payload))
        del output
        await until(lambda: bool(second.worker_got))
        assert second.worker_got == [Append("a", image(7))]
        assert max(first.sizes + second.sizes) < 300
        await until(lambda: payloads.held_bytes == 0)
        for line in (first, second):
            await line.close()

    async def test_it_is_lost_with_the_worker_that_wrote_it(self) -> None:
        payloads = RemotePayloads()
        first = RemoteLine(payloads, relays=True)
        second = RemoteLine(payloads, timeout_s=0.2)
        first.say(JobOutput("a", image(7)))
        output = first.engine_got.pop()
        assert isinstance(output, JobOutput)
        await first.close()
        assert payloads.held_bytes > 0, "somebody still refers to it"
        second.send(Append("a", output.payload))
        await until(lambda: bool(second.engine_got))
        (ended,) = second.engine_got
        assert isinstance(ended, JobEnded)
        assert (ended.outcome, ended.code) == (Outcome.FAILED, "stage_timeout")
        del output
        await until(lambda: payloads.held_bytes == 0)
        await second.close()
        assert payloads.ends == set()

    async def test_who_wrote_hears_of_readers_that_are_dead(self) -> None:
        payloads = RemotePayloads()
        first, second = RemoteLine(payloads, relays=True), RemoteLine(payloads)
        told: list[bytes] = []
        first.engine.link_made(told.append, first.engine_got.append)
        await second.close()
        (body,) = bodies(b"".join(told))
        assert framing.decode_beside(body) == ReaderGone(second.engine.workers_seat.reader)
        first.worker.take(body)  # of ZeroMQ nothing is kept for a reader
        await first.close()
