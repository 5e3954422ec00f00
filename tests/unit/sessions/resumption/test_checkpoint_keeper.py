from __future__ import annotations

import asyncio
from pathlib import Path

from structlog.testing import capture_logs

from duologue.protocol.commands import CreateItem, UpdateSession
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.session_config import FunctionTool
from duologue.sessions.resumption.checkpoint_keeper import LOOK_S, CheckpointKeeper
from duologue.sessions.resumption.checkpoints import Checkpoint, CheckpointFolder
from tests.fakes.call import FakeCall
from tests.fakes.plugin import FakePlugin


class Scene:
    def __init__(self, path: Path, per_look: int = 8) -> None:
        self.call = FakeCall(FakePlugin(), patch=DuplexPatch(), resumable=True)
        self.folder = CheckpointFolder(path, max_files=8, max_bytes=1 << 16, max_age_s=600)
        self.keeper = CheckpointKeeper(
            self.folder,
            self.call.manager.all,
            self.call.clock,
            self.call.wheel,
            per_look=per_look,
        )

    def say(self, text: str) -> None:
        content = (InputText(text=text),)
        self.call.send(CreateItem(item=MessageItem(role="user", content=content)))

    async def look(self) -> list[int]:
        """Let it look; the number of items in each file."""
        self.call.clock.advance(LOOK_S)
        if self.keeper._writing is not None:
            await self.keeper._writing
        return [len(each.inheritance.items) for each in await self.found()]

    async def found(self) -> list[Checkpoint]:
        return await asyncio.to_thread(self.folder.load, self.call.clock.wall_time())


async def test_what_changes_is_written_and_what_ends_is_removed(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.keeper.start()
    assert await scene.look() == [0]
    scene.say("One.")
    assert await scene.look() == [1]
    (before,) = await scene.found()
    assert await scene.look() == [1]
    assert await scene.found() == [before]
    scene.call.session.close("closed")
    assert await scene.look() == []
    await scene.keeper.stop()


async def test_each_has_its_turn_though_others_go_on_changing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, per_look=1)
    for _ in range(2):
        scene.call.manager.open(None, patch=DuplexPatch(), resumable=True)
    scene.keeper.start()
    for written in (1, 2, 3):
        scene.say("And on.")  # the first session has something new at every look
        assert len(await scene.look()) == written
    for session in list(scene.call.manager.all()):
        session.close("closed")
    assert await scene.look() == []
    await scene.keeper.stop()


async def test_the_end_writes_all_whatever_is_written_at_a_look(tmp_path: Path) -> None:
    scene = Scene(tmp_path, per_look=1)
    scene.call.manager.open(None, patch=DuplexPatch(), resumable=True)
    await scene.keeper.stop()
    assert len(await scene.found()) == 2


async def test_the_end_writes_what_is_not_yet_written(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.keeper.start()
    scene.say("One.")
    await scene.keeper.stop()
    assert len(await scene.found()) == 1


async def test_what_an_earlier_process_left_waits_for_a_while(tmp_path: Path) -> None:
    earlier = Scene(tmp_path)
    earlier.keeper.start()
    earlier.say("One.")
    await earlier.keeper.stop()
    scene = Scene(tmp_path)
    (kept,) = await scene.keeper.load(grace_s=5)
    assert kept.until == scene.call.clock.now() + 5
    scene.call.session.close("closed")
    scene.keeper.start()
    assert await scene.look() == [1]
    scene.call.clock.advance(5)
    assert await scene.look() == []
    await scene.keeper.stop()


async def test_one_that_cannot_be_written_costs_no_other_its_own(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    tool = FunctionTool(name="f", parameters={"maximum": 10**30})
    scene.call.send(UpdateSession(session=DuplexPatch(tools=(tool,))))
    scene.keeper.start()
    with capture_logs() as logs:
        assert await scene.look() == []
    assert [entry["event"] for entry in logs] == ["checkpoint_failed"]
    scene.call.manager.open(None, patch=DuplexPatch(), resumable=True)
    with capture_logs() as logs:
        for _ in range(3):
            assert await scene.look() == [0]
    assert logs == [], "told once"
    scene.call.send(UpdateSession(session=DuplexPatch(tools=())))
    assert await scene.look() == [0, 0]
    await scene.keeper.stop()
