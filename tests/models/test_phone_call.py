"""A call by telephone with the real models: it greets, answers, and stops when interrupted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import soundfile

import duologue
from duologue.app import running_app
from duologue.codecs.resample import StreamResampler
from duologue.gateway.settings import GatewaySettings
from duologue.settings import Settings
from tests.conformance.phone_caller import phone_call
from tests.conformance.test_phone import BYTES_PER_MS, heard_something, is_quiet

QUESTIONS = Path(duologue.__file__).parent / "assets" / "questions"
LEAD_MS, SLACK_MS = 200, 100

pytestmark = pytest.mark.models


def question(name: str) -> bytes:
    """A question as s16le at 24 kHz."""
    pcm, rate_hz = soundfile.read(QUESTIONS / f"{name}.flac", dtype="int16")
    return StreamResampler(rate_hz, 24_000).process(pcm.tobytes())


async def test_a_person_calls_by_telephone() -> None:
    settings = Settings(gateway=GatewaySettings(port=0, drain_timeout_s=0))
    async with running_app(settings) as app, asyncio.timeout(150):
        url = f"ws{app.url.removeprefix('http')}/v1/telephony/twilio/stream"
        async with phone_call(url, {}) as caller:
            await caller.until(lambda: heard_something(caller))
            await caller.until(lambda: is_quiet(caller, 2000))
            asked_at = len(caller.heard)
            caller.say(question("months"))
            await caller.until(lambda: heard_something(caller, asked_at, ms=600))
            clears = len(caller.cleared_at)
            caller.say(question("bees"))
            await caller.until(lambda: len(caller.cleared_at) > clears)
            assert caller.buffered_at_clear[-1] <= (LEAD_MS + SLACK_MS) * BYTES_PER_MS
            cleared_at = caller.cleared_at[-1]
            await caller.until(lambda: heard_something(caller, cleared_at, ms=300))
            await caller.hang_up()
        await app.sessions.wait_empty(5)
        assert len(app.sessions) == 0
