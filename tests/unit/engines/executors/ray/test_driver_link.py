from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from duologue.core.errors import EngineError
from duologue.engines.executors.ray.driver_link import DriverLink
from duologue.engines.executors.ray.messages import Birth, Find, Join
from duologue.engines.messages import Placement
from tests.fakes.marked import Marked
from tests.fakes.pretend_cluster import NOWHERE
from tests.unit.engines.executors.kinds import PRETENDING

PLACE = Placement(group="speech", strategy="PACK", bundles=({"CPU": 1.0},), index=0)


class Heard:
    """What becomes of an order."""

    def __init__(self) -> None:
        self.how = ""
        self.news = asyncio.Event()

    def found(self, host: str, port: int) -> None:
        self.news.set()

    def born(self) -> None: ...

    def gone(self, how: str) -> None:
        self.how = how
        self.news.set()


async def joined(marked: Marked) -> DriverLink:
    link = DriverLink()
    await link.join(PRETENDING, {**os.environ, **marked.env}, Join("auto", 10), 30)
    return link


def order(id: int) -> Find:
    return Find(id, PLACE, Birth(name="stage/0", env={}), b"s" * 32)


async def test_it_leaves_when_told_and_takes_all_along() -> None:
    marked, heard = Marked(), Heard()
    link = await joined(marked)
    link.find(order, heard)
    await heard.news.wait()
    assert len(marked.environments()) == 2, "a driver and an actor"
    await link.close()
    assert not link.is_up
    await marked.gone()


async def test_when_it_is_killed_so_is_everything_that_it_held() -> None:
    marked, heard = Marked(), Heard()
    link = await joined(marked)
    pid = marked.pid()
    link.find(order, heard)
    await heard.news.wait()
    heard.news.clear()
    os.kill(pid, 9)
    await heard.news.wait()
    assert heard.how == "the Ray driver is gone"
    assert not link.is_up
    await marked.gone()
    await link.close()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("print('no Ray here'); raise SystemExit(1)", "the Ray driver is gone: no Ray here"),
        ("import threading; threading.Event().wait()", "'auto' was not joined within 1 s"),
    ],
)
async def test_one_that_does_not_join_is_an_error_and_leaves_nothing(
    tmp_path: Path, text: str, reason: str
) -> None:
    program = tmp_path / "driver.py"
    program.write_text(text)
    marked = Marked()
    with pytest.raises(EngineError, match=reason):
        await DriverLink().join(
            (sys.executable, str(program)), {**os.environ, **marked.env}, Join("auto", 10), 1
        )
    await marked.gone()


async def test_a_cluster_that_is_not_there_is_an_error() -> None:
    with pytest.raises(EngineError, match="'nowhere'"):
        await DriverLink().join(PRETENDING, dict(os.environ), Join(NOWHERE, 10), 30)
