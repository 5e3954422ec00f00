from __future__ import annotations

import asyncio

import pytest

from duologue.clients.errors import SendBufferFull
from duologue.clients.outbox import FRAMES, Outbox
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import ClearAudio, CommitAudio
from duologue.protocol.duplex.commands import ShowFrame


async def test_commands_come_out_in_order() -> None:
    outbox = Outbox()
    commands = [AppendAudio(audio=b"1"), CommitAudio(), AppendAudio(audio=b"2")]
    for command in commands:
        outbox.put(command)
    assert [await outbox.take() for _ in commands] == commands


async def test_audio_that_does_not_fit_is_refused_and_commands_still_pass() -> None:
    outbox = Outbox(audio_bytes=10)
    outbox.put(AppendAudio(audio=bytes(8)))
    with pytest.raises(SendBufferFull, match=r"12 bytes of audio would wait .* limit is 10\."):
        outbox.put(AppendAudio(audio=bytes(4)))
    outbox.put(ClearAudio())
    assert outbox.audio_bytes == 8
    await outbox.take()
    outbox.put(AppendAudio(audio=bytes(10)))


async def test_commands_are_bounded_too() -> None:
    outbox = Outbox(commands=2)
    outbox.put(ClearAudio())
    outbox.put(ClearAudio())
    with pytest.raises(SendBufferFull, match="2 commands wait"):
        outbox.put(ClearAudio())
    await outbox.take()
    outbox.put(ClearAudio())


async def test_one_can_wait_until_everything_is_on_its_way() -> None:
    outbox = Outbox()
    await outbox.drained()
    outbox.put(ClearAudio())
    waiting = asyncio.ensure_future(outbox.drained())
    await asyncio.sleep(0)
    assert not waiting.done()
    await outbox.take()
    async with asyncio.TaskGroup() as group:
        taker = group.create_task(outbox.take())
        await waiting
        taker.cancel()


async def test_closing_drops_what_waits_and_frees_those_who_wait() -> None:
    outbox = Outbox()
    outbox.put(AppendAudio(audio=b"12"))
    outbox.close()
    await outbox.drained()
    assert outbox.audio_bytes == 0


async def test_of_the_frames_of_a_camera_the_newest_wait() -> None:
    outbox = Outbox(commands=FRAMES + 1)
    outbox.put(ClearAudio())
    frames = [ShowFrame(data=bytes([shade])) for shade in range(2 * FRAMES)]
    for frame in frames:
        outbox.put(frame)
    waiting = [await outbox.take() for _ in range(FRAMES + 1)]
    assert waiting == [ClearAudio(), *frames[-FRAMES:]]
