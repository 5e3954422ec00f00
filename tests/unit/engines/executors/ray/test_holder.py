from __future__ import annotations

import asyncio

import pytest

from duologue.core.errors import EngineError
from duologue.engines.executors.ray.door import Purpose, come_in
from duologue.engines.executors.ray.holder import Holder
from duologue.engines.executors.ray.messages import Birth
from tests.fakes.marked import Marked

HOST, SECRET = "127.0.0.1", b"s" * 32


async def test_a_worker_gets_the_engines_connections_and_its_end_is_told() -> None:
    """The contract tests do the rest."""
    here, marked = Holder(), Marked()
    port = here.listen(HOST)
    birth = Birth(name="stage/0", env=marked.env)
    bearing = asyncio.create_task(asyncio.to_thread(here.bear, birth, SECRET))
    link = await come_in(HOST, port, SECRET, Purpose.LINK)
    output = await come_in(HOST, port, SECRET, Purpose.OUTPUT)
    await bearing
    assert marked.pid()
    with output:
        link.close()  # the engine is gone
        assert await asyncio.to_thread(here.wait) == "its process ended with status 0"
    await marked.gone()


async def test_an_interpreter_that_is_not_there_is_named() -> None:
    here = Holder()
    port = here.listen(HOST)
    birth = Birth(name="stage/0", env={}, interpreter="/nowhere/python")
    bearing = asyncio.create_task(asyncio.to_thread(here.bear, birth, SECRET))
    with (
        await come_in(HOST, port, SECRET, Purpose.LINK),
        await come_in(HOST, port, SECRET, Purpose.OUTPUT),
        pytest.raises(EngineError, match=r"stage/0 cannot be started.*/nowhere/python"),
    ):
        await bearing


def test_an_engine_that_does_not_come_is_not_waited_for() -> None:
    here = Holder(let_in_s=0.05)
    here.listen(HOST)
    with pytest.raises(EngineError, match=r"did not come within 0.05 s"):
        here.bear(Birth(name="stage/0", env={}), SECRET)
