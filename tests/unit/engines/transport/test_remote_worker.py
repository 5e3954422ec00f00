from __future__ import annotations

from duologue.engines.messages import (
    Append,
    Cancel,
    Finish,
    Grant,
    JobEnded,
    Open,
    Pause,
)
from duologue.engines.ports import Outcome
from duologue.engines.transport.remote_engine import RemotePayloads
from tests.fakes.clock import FakeClock
from tests.patience import until
from tests.unit.engines.transport.remote_line import RemoteLine, elsewhere, image

NOBODY = "tcp://127.0.0.1:1"


async def test_a_cancel_overtakes_the_payloads_of_its_job_and_is_acknowledged() -> None:
    payloads = RemotePayloads()
    line = RemoteLine(payloads, clock=FakeClock())  # whose reads never run out of time
    frames = line.engine.encode([Open("a", image(1), input_ended=False), Append("a", image(2))])
    line.to_worker(elsewhere(frames, place=NOBODY))
    line.send(Grant("a", 3), Pause(True), Grant("b", 3))
    assert line.worker_got == [Pause(True), Grant("b", 3)]
    line.send(Cancel("a"), Finish("b"))
    opened, *others = line.worker_got[2:]
    assert isinstance(opened, Open), "it is opened to be ended, and so says that it was"
    assert others == [Cancel("a"), Finish("b")]
    await until(lambda: len(line.freed) == 2)
    assert line.engine_got == [], "what nobody waits for is no failure"
    await line.close()


async def test_an_input_that_does_not_come_in_time_fails_its_job() -> None:
    line = RemoteLine(RemotePayloads(), timeout_s=0.2)
    frames = line.engine.encode([Append("a", image(1))])
    line.to_worker(elsewhere(frames, place=NOBODY))
    line.send(Append("b", image(2, 100)))
    await until(lambda: bool(line.engine_got))
    (ended,) = line.engine_got
    assert isinstance(ended, JobEnded)
    assert (ended.outcome, ended.code) == (Outcome.FAILED, "stage_timeout")
    assert line.worker_got == [Append("b", image(2, 100)), Cancel("a")]
    assert len(line.freed) == 1
    await line.close()


async def test_what_the_engine_has_read_is_freed() -> None:
    payloads = RemotePayloads()
    line = RemoteLine(payloads)
    for number in range(10):
        line.send(Append("a", image(number, 900_000)))
        await until(lambda n=number: len(line.worker_got) == n + 1)
        await until(lambda: payloads.held_bytes == 0)
    assert max(line.sizes) < 300, "there was always room"
    await line.close()
