"""Clients that stand in environments of their own, unmodified but for the address (C69).

Each speaks in real time, hears the answer, types, interrupts a long answer by speaking, has a tool
called, and leaves. It must not log a warning about us, and is sent no event that the SDK does not
declare. ``make conformance`` runs these tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from duologue.artifacts.settings import ArtifactSettings
from duologue.gateway.settings import TlsSettings
from duologue.settings import Settings
from tests.conformance.checked_line import checked_line
from tests.conformance.foreign_client import Caller, hold_call
from tests.conformance.talking_gateway import talking_gateway

pytestmark = pytest.mark.clients

EVERYTHING = {
    "session.update",
    "input_audio_buffer.append",
    "conversation.item.create",
    "conversation.item.truncate",
    "response.create",
}
"""What is said where everything is done: speech, typed text, a cut, and the output of a tool."""

ANSWER = "Well, you said hello again."
WEATHER = "Well, you said sun over x."


async def test_openai_agents_in_python(settings: Settings, tmp_path: Path) -> None:
    async with talking_gateway(settings) as gateway, checked_line(gateway.port) as line:
        report = await hold_call(Caller("agents_caller.py", "agents"), line.url, tmp_path)
    assert set(line.said) >= EVERYTHING
    assert report["complaints"] == []
    assert "error" not in report
    assert report["tool"] == "sun over x"
    assert report["interruptions"] == 1
    assert report[f"assistant: {ANSWER}"]
    assert report[f"assistant: {WEATHER}"]


async def test_livekit_agents(settings: Settings, tmp_path: Path) -> None:
    async with talking_gateway(settings) as gateway, checked_line(gateway.port) as line:
        report = await hold_call(Caller("livekit_caller.py", "livekit"), line.url, tmp_path)
    assert set(line.said) >= EVERYTHING
    assert report["complaints"] == []
    assert "error" not in report
    assert report["tool"] == "x"
    assert report["cut"] == 1
    assert report["cut_text"].startswith("Well, you said")
    assert report[f"assistant: {ANSWER}"]
    assert report[f"assistant: {WEATHER}"]


async def test_pipecat(settings: Settings, tmp_path: Path) -> None:
    async with talking_gateway(settings) as gateway, checked_line(gateway.port) as line:
        report = await hold_call(Caller("pipecat_caller.py", "pipecat"), line.url, tmp_path)
    assert set(line.said) >= EVERYTHING
    assert report["complaints"] == []
    assert "error" not in report
    assert report["tool"] == "x"
    assert report["assistant: Well, you said hello there."], "what was typed"
    assert report[f"assistant: {ANSWER}"]
    assert ["user", "hello again"] in report["history"]


async def test_openai_agents_in_javascript(settings: Settings, tmp_path: Path) -> None:
    async with talking_gateway(settings) as gateway, checked_line(gateway.port) as line:
        report = await hold_call(Caller("agents_caller.mjs"), line.url, tmp_path)
    assert set(line.said) >= EVERYTHING
    assert report["complaints"] == []
    assert "error" not in report
    assert report["tool"] == "x"
    assert report["interruptions"] == 1
    assert report[f"assistant: {ANSWER}"]
    assert report[f"assistant: {WEATHER}"]


@pytest.mark.parametrize("kind", ["server", "browser"])
async def test_openai_in_javascript(settings: Settings, tmp_path: Path, kind: str) -> None:
    """It knows no other way than wss; in a browser its socket has no headers."""
    door = settings.gateway.model_copy(update={"tls": TlsSettings(dev=True)})
    artifacts = ArtifactSettings(cache_dir=tmp_path / "cache")
    secure = settings.model_copy(update={"gateway": door, "artifacts": artifacts})
    async with talking_gateway(secure) as gateway:
        assert gateway.app.tls is not None
        report = await hold_call(
            Caller("openai_speaker.mjs", arguments=(kind,)),
            gateway.app.url,
            tmp_path,
            certificate=gateway.app.tls.certificate.path,
        )
    assert report["complaints"] == []
    assert "error" not in report
    assert report["user: hello again"]
    assert report[f"assistant: {ANSWER}"]
    assert (report["cancelled"], report["cut_ms"]) == (1, 120)
    assert report["tool"] == "x"
    assert report[f"assistant: {WEATHER}"]
    assert report["code"] == 1000


async def test_livekit_services(settings: Settings, tmp_path: Path) -> None:
    caller = Caller("livekit_services_caller.py", "livekit")
    async with talking_gateway(settings) as gateway:
        report = await hold_call(caller, gateway.app.url, tmp_path)
    assert report["complaints"] == []
    assert report["answer"] == "Well, you said hello there."
    assert report["tool_arguments"] == '{"what":"x"}'
    assert report["weather"] == WEATHER
    assert report["tokens"] > 1
    assert report["recognised"] == report["streamed"] == "hello again"
    assert report["voice_samples"] > 1000


@pytest.mark.parametrize("turns_by", ["pipecat", "server"])
async def test_pipecat_listens_only(settings: Settings, tmp_path: Path, turns_by: str) -> None:
    caller = Caller("pipecat_listener_caller.py", "pipecat", (turns_by,))
    async with talking_gateway(settings) as gateway, checked_line(gateway.port) as line:
        report = await hold_call(caller, line.url, tmp_path)
    assert ("input_audio_buffer.commit" in line.said) == (turns_by == "pipecat")
    assert report["complaints"] == []
    assert report["user: hello again"]
    assert report["user: hello long"]


async def test_pipecat_services(settings: Settings, tmp_path: Path) -> None:
    caller = Caller("pipecat_services_caller.py", "pipecat")
    async with talking_gateway(settings) as gateway:
        report = await hold_call(caller, gateway.app.url, tmp_path)
    assert report["complaints"] == []
    assert "error" not in report
    assert report["user: hello again"]
    assert report[f"assistant: {ANSWER}"]
    assert report["tool"] == "x"
    assert report["rate_hz"] == 24_000
    assert report["tokens"] > 1
    assert ["user", "hello weather"] in report["history"]


@pytest.mark.parametrize(
    ("script", "environment", "answer"),
    [
        ("livekit_example_caller.py", "livekit", "Well, you said x is not on the menu."),
        ("pipecat_example_caller.py", "pipecat", 'Well, you said "x is not on the menu".'),
    ],
)
async def test_the_examples_of_agents_call_a_function_and_answer(
    settings: Settings, tmp_path: Path, script: str, environment: str, answer: str
) -> None:
    async with talking_gateway(settings) as gateway:
        report = await hold_call(Caller(script, environment), gateway.app.url, tmp_path)
    assert report["complaints"] == []
    assert "error" not in report
    assert report[f"assistant: {answer}"]
