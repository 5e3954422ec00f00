"""The machine with the head of a cluster is gone, and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from duologue.clients.client import DuplexClient
from tests.cluster.far_voice import begun, speaking
from tests.fakes.two_nodes import TwoNodes, free_address, usual
from tests.faults.server_process import server_process
from tests.patience import until

pytestmark = pytest.mark.ray

LOST_AFTER_S = 15
"""For this long Ray looks for its head; it is a minute where nothing else is said."""

BACK_S = 150.0


@pytest.fixture
def head() -> str:
    return free_address()


@pytest.fixture
def nodes(head: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoNodes]:
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", str(LOST_AFTER_S))
    two = TwoNodes()
    try:
        two.start(*usual(head))
        yield two
    finally:
        two.stop()


async def test_without_its_head_a_cluster_loses_its_stages_and_others_go_on_until_it_is_back(
    nodes: TwoNodes, head: str, tmp_path: Path
) -> None:
    async with server_process(tmp_path, speaking(tmp_path, "there", head)) as server:
        where = f"127.0.0.1:{server.port}"
        async with (
            DuplexClient.connect(where, model="far", reconnect=None) as far,
            DuplexClient.connect(where, model="near", reconnect=None) as near,
        ):
            cut = await begun(far)
            await asyncio.to_thread(nodes.lose_the_head)
            assert (await cut.finished()).status == "failed"
            assert (await (await begun(near)).finished()).status == "completed"
            await until(lambda: nodes.workers() == [])
            await asyncio.to_thread(nodes.start, *usual(head))
            status = ""
            async with asyncio.timeout(BACK_S):
                while status != "in_progress":
                    status = (await begun(far)).status
