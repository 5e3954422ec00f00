"""OpenAI's Python SDK does everything in one call, in real time, in each of its dialects (C69)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from duologue.settings import Settings
from tests.conformance.official_caller import OfficialCaller, beta_call, official_call
from tests.conformance.recorded_call import SESSION, TOOL, message
from tests.conformance.talking_gateway import API_KEY, talking_gateway, with_lead

FLAT: dict[str, Any] = {
    "instructions": "Be kind.",
    "voice": "two",
    "input_audio_transcription": {"model": "whisper-1"},
    "turn_detection": {"type": "server_vad", "silence_duration_ms": 300},
    "tools": [TOOL],
}
HEARD = "conversation.item.input_audio_transcription.completed"

Dial = Callable[[str, str], AbstractAsyncContextManager[OfficialCaller]]


@pytest.mark.parametrize(
    ("dial", "session", "prefix"),
    [(official_call, SESSION, "response.output_audio"), (beta_call, FLAT, "response.audio")],
    ids=["ga", "beta"],
)
async def test_it_speaks_hears_interrupts_cuts_calls_a_tool_types_and_closes(
    settings: Settings, dial: Dial, session: dict[str, Any], prefix: str
) -> None:
    async with (
        talking_gateway(with_lead(settings, 500)) as gateway,
        dial(gateway.http_url, API_KEY) as caller,
    ):
        await caller.hear("session.created")
        await caller.send(type="session.update", session=session)
        await caller.hear("session.updated")

        await caller.speak("hello again")
        assert (await caller.hear(HEARD))["transcript"] == "hello again"
        said = await caller.hear(f"{prefix}_transcript.done")
        assert said["transcript"] == "Well, you said hello again."
        await caller.hear("response.done")

        await caller.speak("long")
        cut = await caller.hear(f"{prefix}.delta")
        await caller.listen(1000)
        await caller.speak("hello again")
        cancelled = (await caller.hear("response.done"))["response"]
        assert cancelled["status_details"]["reason"] == "turn_detected"
        assert (await caller.hear("response.done"))["response"]["status"] == "completed"
        place = {"item_id": cut["item_id"], "content_index": 0}
        await caller.send(type="conversation.item.truncate", **place, audio_end_ms=900)
        assert (await caller.hear("conversation.item.truncated"))["audio_end_ms"] == 900

        await write(caller, "Please look up x.")
        call = await caller.hear("response.function_call_arguments.done")
        await caller.hear("response.done")
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "fine"}
        await caller.send(type="conversation.item.create", item=output)
        await caller.listen(300)
        await caller.send(type="response.create")
        answer = (await caller.hear("response.done"))["response"]["output"][0]["content"][0]
        assert answer["transcript"] == "Well, you said fine."
        assert caller.record.of("error") == []


async def write(caller: OfficialCaller, text: str) -> None:
    """Type something, and ask for an answer."""
    await caller.listen(300)
    await caller.send(type="conversation.item.create", item=message("item_typed", text))
    await caller.send(type="response.create")
