"""Our own client over a real socket: speak, be answered, interrupt, be answered again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from duologue.app import App, running_app
from duologue.clients import ClipDevice, DuplexClient, LineState, Taken
from duologue.protocol.events import ItemTruncated, SpeechStarted
from duologue.protocol.items import MessageItem
from duologue.protocol.response_events import AudioDelta, ResponseDone
from tests.fakes.talking_gateway import LONG_LINE, SHORT_LINE, speech, talking_settings


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[App]:
    async with running_app(talking_settings(tmp_path, LONG_LINE, SHORT_LINE)) as app:
        yield app


async def test_a_caller_speaks_is_answered_interrupts_and_is_answered_again(gateway: App) -> None:
    played: dict[str, int] = {}

    def listen(_said: bytes, taken: Taken) -> None:
        for item_id, samples in taken.runs:
            if item_id is not None:
                played[item_id] = played.get(item_id, 0) + samples

    microphone = ClipDevice(on_frame=listen)
    async with DuplexClient.connect(gateway.url, device=microphone) as call:
        events = call.events()
        microphone.say(speech(500))
        await call.wait_until(lambda: len(played) == 1)
        (first,) = played
        await call.wait_until(lambda: played[first] >= 24 * 300)

        microphone.say(speech(700))
        await call.wait_until(lambda: len(played) == 2)
        second = next(item_id for item_id in played if item_id != first)
        await call.wait_until_quiet()

        heard_ms = played[first] // 24
        assert 300 <= heard_ms < 1500
        assert played[second] == call.playback.received_samples(second)
        cut = await call.retrieve(first)
        assert isinstance(cut, MessageItem)
        assert cut.status == "incomplete"
        lines = {line.item_id: line.state for line in call.transcript}
        assert lines[first] is LineState.CUT
        assert lines[second] is LineState.DONE
        waits = [turn.wait_s for turn in call.timing]
        assert len(waits) == 2
        assert all(wait is not None and 0 < wait < 5 for wait in waits)

    seen = [event async for event in events]
    statuses = [event.response.status for event in seen if isinstance(event, ResponseDone)]
    assert statuses == ["cancelled", "completed"]
    interruption = [index for index, event in enumerate(seen) if isinstance(event, SpeechStarted)][
        1
    ]
    late = [
        event
        for event in seen[interruption:]
        if isinstance(event, AudioDelta) and event.item_id == first
    ]
    assert late == []
    truncations = [
        event.audio_end_ms
        for event in seen
        if isinstance(event, ItemTruncated) and event.item_id == first
    ]
    assert truncations[-1] == heard_ms
