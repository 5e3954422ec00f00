"""A Twilio-shaped caller holds a call: talks, hears, interrupts, types, hangs up."""

from __future__ import annotations

import asyncio

import numpy as np

from duologue.gateway.telephony.settings import TelephonySettings
from duologue.settings import Settings
from tests.conformance.phone_caller import PhoneCaller, phone_call
from tests.conformance.talking_gateway import API_KEY, TalkingGateway, talking_gateway
from tests.faults.scripted_models import beeps
from tests.patience import PATIENCE_S

LINE_HZ = 8_000
BYTES_PER_MS = 8
LEAD_MS = 200
FRAME_MS = 20


def phone_settings(settings: Settings, **telephony: object) -> Settings:
    gateway = settings.gateway.model_copy(
        update={"telephony": TelephonySettings(lead_ms=LEAD_MS, **telephony)}
    )
    return settings.model_copy(update={"gateway": gateway})


def stream_url(gateway: TalkingGateway, carrier: str = "twilio") -> str:
    return f"ws://127.0.0.1:{gateway.port}/v1/telephony/{carrier}/stream"


def loud_frames(pcm: bytes) -> list[bool]:
    """For each 20 ms whether there is sound."""
    samples = np.frombuffer(pcm, np.int16).astype(np.float64)
    frames = samples[: len(samples) // 160 * 160].reshape(-1, 160)
    return [bool(value) for value in np.sqrt((frames**2).mean(axis=1)) > 300]


def heard_something(caller: PhoneCaller, since: int = 0, ms: int = 200) -> bool:
    return sum(loud_frames(caller.heard_pcm(since))) * FRAME_MS >= ms


def is_quiet(caller: PhoneCaller, ms: int) -> bool:
    frames = loud_frames(caller.heard_pcm())[-ms // FRAME_MS :]
    return len(frames) * FRAME_MS >= ms and not any(frames)


async def test_a_call_by_phone_from_its_greeting_to_its_end(settings: Settings) -> None:
    settings = phone_settings(settings)
    async with talking_gateway(settings) as gateway, asyncio.timeout(PATIENCE_S):
        async with phone_call(stream_url(gateway), {"key": API_KEY}) as caller:
            # It greets.
            await caller.until(lambda: heard_something(caller))
            await caller.until(lambda: is_quiet(caller, 600))
            # It answers.
            asked_at = len(caller.heard)
            caller.say(beeps("hello long"))
            await caller.until(lambda: heard_something(caller, asked_at, ms=300))
            assert len(gateway.app.sessions) == 1
            # It is interrupted.
            clears = len(caller.cleared_at)
            caller.say(beeps("hello again again"))
            await caller.until(lambda: len(caller.cleared_at) > clears)
            at = caller.cleared_at[-1]
            # Little was there to be taken back, and nothing of it is heard.
            assert caller.buffered_at_clear[-1] <= (LEAD_MS + FRAME_MS) * BYTES_PER_MS
            after = caller.heard_pcm(at, at + 160)
            assert not any(loud_frames(after))
            # The next answer is whole: a key ends it at once, too.
            await caller.until(lambda: heard_something(caller, at, ms=300))
            clears = len(caller.cleared_at)
            for key in "42#":
                await caller.press(key)
            await caller.until(lambda: len(caller.cleared_at) > clears)
            await caller.until(lambda: heard_something(caller, caller.cleared_at[-1], ms=100))
            marks = [m["mark"]["name"] for m in caller.received if m["event"] == "mark"]
            assert len(marks) == len(set(marks)) > 5
            assert caller.most_buffered <= (LEAD_MS + 5 * FRAME_MS) * BYTES_PER_MS
            await caller.hang_up()
        await gateway.app.sessions.wait_empty(PATIENCE_S)
        assert len(gateway.app.sessions) == 0
