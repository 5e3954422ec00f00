"""Every executor, and the cluster that those with a real Ray share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from _pytest.mark import ParameterSet

from duologue.engines.executors.base import Executor
from tests.fakes.two_nodes import TwoNodes, address, usual
from tests.unit.engines.executors.kinds import KINDS


def _kinds(*, with_processes: bool) -> list[ParameterSet]:
    return [
        pytest.param(name, marks=[pytest.mark.ray] if kind.has_cluster else [])
        for name, kind in sorted(KINDS.items())
        if kind.has_processes or not with_processes
    ]


@pytest.fixture(scope="session")
def two_nodes() -> Iterator[TwoNodes]:
    two = TwoNodes()
    try:
        two.start(*usual(address()))
        yield two
    finally:
        two.stop()


@pytest.fixture(params=_kinds(with_processes=False))
def kind(request: pytest.FixtureRequest) -> str:
    """The name of any executor."""
    return _ready(request)


@pytest.fixture(params=_kinds(with_processes=True))
def process_kind(request: pytest.FixtureRequest) -> str:
    """The name of one whose workers are processes."""
    return _ready(request)


@pytest_asyncio.fixture
async def executor(kind: str) -> AsyncIterator[Executor]:
    made = KINDS[kind].make()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def process_executor(process_kind: str) -> AsyncIterator[Executor]:
    made = KINDS[process_kind].make()
    yield made
    await made.close()


def _ready(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if KINDS[name].has_cluster:
        request.getfixturevalue("two_nodes")
    return name
