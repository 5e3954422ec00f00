"""A gateway that is killed costs its calls a moment, and not a sample."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

from duologue.clients import DuplexClient, Reconnected, ReconnectPolicy
from duologue.hosts.settings import HostsSettings
from duologue.protocol.commands import CreateItem
from duologue.protocol.items import InputText, MessageItem
from tests.faults.edge_killed import CONFIG, children, edge_killed
from tests.faults.server_process import server_process
from tests.patience import until

CALLS = 8


async def test_calls_of_a_killed_gateway_go_on_at_whichever_answers(tmp_path: Path) -> None:
    outcome = await edge_killed(tmp_path, CALLS, before_s=1.0, after_s=2.0)
    assert (outcome.resumed, outcome.intact, outcome.errors) == (CALLS, CALLS, 0)


async def test_calls_of_a_gateway_that_hangs_go_on_at_another_and_it_is_started_again(
    tmp_path: Path,
) -> None:
    """Nobody is told that it hangs, and it goes on taking connections: it has to be killed."""
    outcome = await edge_killed(tmp_path, CALLS, before_s=1.0, after_s=14.0, by=signal.SIGSTOP)
    assert (outcome.resumed, outcome.intact, outcome.errors) == (CALLS, CALLS, 0)
    assert outcome.worst_silence_s < 2 * HostsSettings().edge_silence_s


async def test_gateways_may_be_killed_at_any_moment_also_while_calls_come_back(
    tmp_path: Path,
) -> None:
    chance = random.Random(4)
    waits = [chance.uniform(0.0, 1.0) for _ in range(3)]
    outcome = await edge_killed(tmp_path, CALLS, before_s=waits[0], again_s=waits[1:], after_s=2.0)
    assert (outcome.resumed, outcome.intact, outcome.errors) == (CALLS, CALLS, 0)


async def test_with_checkpoints_a_conversation_outlives_the_host_that_held_it(
    tmp_path: Path,
) -> None:
    config = {**CONFIG, "sessions": {"checkpoint_folder": str(tmp_path / "kept")}}
    async with server_process(tmp_path, config) as server:
        host = children(server.pid)[0]
        patient = ReconnectPolicy(first_wait_s=0.2, longest_wait_s=0.5, give_up_s=40.0)
        async with DuplexClient.connect(
            server.url, dialect="duplex", model="echo", reconnect=patient
        ) as call:
            events = call.events()
            said = (InputText(text="Remember the number seven."),)
            call.send(CreateItem(item=MessageItem(id="item_1", role="user", content=said)))
            assert (await call.retrieve("item_1")).id == "item_1"
            await until(lambda: any((tmp_path / "kept").glob("*.checkpoint")))
            session_id = call.session.id
            os.kill(host, signal.SIGKILL)
            while not isinstance(event := await anext(events), Reconnected):
                pass
            assert event.rolled_over_from == session_id
            again = await call.retrieve("item_1")
            assert isinstance(again, MessageItem)
            assert again.content == said
