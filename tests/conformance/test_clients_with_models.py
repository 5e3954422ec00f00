"""Each client asks the real models one question, and hears what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import soundfile
import soxr

from duologue.app import running_app
from duologue.gateway.settings import GatewaySettings, TlsSettings
from duologue.settings import Settings
from tests.conformance.foreign_client import Caller, hold_call
from tests.conformance.official_caller import official_call
from tests.conformance.recorded_call import SESSION
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


DOOR = GatewaySettings(port=0, drain_timeout_s=0, api_keys=(API_KEY,))


def question() -> bytes:
    """What is the capital of France, as s16le PCM at 24 kHz."""
    samples, rate_hz = soundfile.read(QUESTIONS / "france.flac", dtype="int16")
    return bytes(soxr.resample(samples, rate_hz, RATE_HZ).tobytes())


def check(report: dict[str, Any]) -> None:
    answers = [text for text in report if text.startswith("assistant: ")]
    assert any("Paris" in answer for answer in answers), report
    assert report["complaints"] == []


@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.script)
async def test_a_client_asks_a_question_and_is_answered(caller: Caller, tmp_path: Path) -> None:
    async with running_app(Settings(gateway=DOOR)) as app:
        report = await hold_call(caller, app.url, tmp_path, question())
    check(report)


async def test_openai_in_javascript_asks_over_wss(tmp_path: Path) -> None:
    door = DOOR.model_copy(update={"tls": TlsSettings(dev=True)})
    async with running_app(Settings(gateway=door)) as app:
        assert app.tls is not None
        caller = Caller("openai_speaker.mjs", arguments=("server",))
        trusted = app.tls.certificate.path
        report = await hold_call(caller, app.url, tmp_path, question(), certificate=trusted)
    check(report)


async def test_openai_in_python_asks() -> None:
    async with (
        running_app(Settings(gateway=DOOR)) as app,
        official_call(f"{app.url}/v1", API_KEY) as caller,
    ):
        await caller.hear("session.created")
        output = {"output": {"voice": "alloy"}}
        audio = {**SESSION["audio"], **output}
        await caller.send(type="session.update", session={"type": "realtime", "audio": audio})
        await caller.hear("session.updated")
        await caller.speak_pcm(question())
        done = (await caller.hear("response.done"))["response"]
        assert done["status"] == "completed"
        assert "Paris" in done["output"][0]["content"][0]["transcript"]
        assert caller.record.of("error") == []
