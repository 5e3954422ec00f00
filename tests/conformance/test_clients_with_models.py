"""Each client asks the real models one question, and hears what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile
import soxr

from duologue.app import running_app
from duologue.gateway.settings import GatewaySettings
from duologue.settings import Settings
from tests.conformance.foreign_client import Caller, hold_call
from tests.conformance.talking_gateway import API_KEY

pytestmark = [pytest.mark.models, pytest.mark.clients]

QUESTIONS = Path(__file__).parents[2] / "duologue" / "assets" / "questions"
RATE_HZ = 24_000

CALLERS = [
    Caller("agents_caller.py", "agents"),
    Caller("livekit_caller.py", "livekit"),
    Caller("pipecat_caller.py", "pipecat"),
    Caller("agents_caller.mjs"),
]


@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.script)
async def test_a_client_asks_a_question_and_is_answered(caller: Caller, tmp_path: Path) -> None:
    samples, rate_hz = soundfile.read(QUESTIONS / "france.flac", dtype="int16")
    question = soxr.resample(samples, rate_hz, RATE_HZ).tobytes()
    door = GatewaySettings(port=0, drain_timeout_s=0, api_keys=(API_KEY,))
    async with running_app(Settings(gateway=door)) as app:
        report = await hold_call(caller, app.url, tmp_path, question)
    answers = [text for text in report if text.startswith("assistant: ")]
    assert any("Paris" in answer for answer in answers), report
    assert report["complaints"] == []
