"""The programs of docs/sdk.md and of examples/, run as their readers run them."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from duologue.app import App, running_app
from duologue.settings import ModelSettings
from tests.fakes.talking_gateway import speech, talking_settings
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sdk.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

TURNS = [
    {
        "line": "Paris.",
        "calls": [
            {"name": "weather", "arguments": '{"city":"Nice"}'},
            {"name": "price", "arguments": '{"what":"tea"}'},
        ],
    },
    {"line": "It is {outputs}."},
]

NO_LLM = """
name: llm_url
stages:
  - name: llm_url
    runner: openai_chat
    executor: inline
    settings: {base_url: "http://127.0.0.1:1/v1", model: nobody}
"""

PRINTED = [
    [r"Paris\. completed \d{3} ms of speech"],
    [r"heard \d+ bytes", r"Paris\."],
    [r"\d{3} ms in answer\.wav: Paris\."],
    [r"\d{3} ms came back"],
    [r"It is sunny in Nice\."],
    [r"caller done 'What is the capital of France\?' ''", r"assistant cut '.*' '.*'"],
    [r"turn_based_duplex", r"the server knows that \d+ ms were heard"],
    [r"this model does not see"],
    [r"still the same call: sess_\w+"],
    [r"invalid_value session\.audio\.output\.speed"],
]
"""Lines that each program prints."""


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[App]:
    model = ModelSettings(name="scripted", plugin="scripted", options={"turns": TURNS})
    settings = talking_settings(tmp_path).model_copy(update={"models": (model,)})
    async with running_app(settings) as app:
        yield app
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


@pytest_asyncio.fixture
async def dumb_gateway(tmp_path: Path) -> AsyncIterator[App]:
    """Its language model cannot be reached, and it has no recogniser."""
    file = tmp_path / "llm_url.yaml"
    file.write_text(NO_LLM, encoding="utf-8")
    options = {"llm_pipeline": "llm_url", "tts_pipeline": "scripted", "examples": ()}
    model = ModelSettings(name="dumb", plugin="cascaded", options=options)
    settings = talking_settings(tmp_path)
    files = (*settings.engine.pipeline_files, file)
    engine = settings.engine.model_copy(update={"pipeline_files": files})
    async with running_app(
        settings.model_copy(update={"models": (model,), "engine": engine})
    ) as app:
        yield app


async def printed(app: App, *command: str, folder: Path = ROOT, status: int = 0) -> list[str]:
    """Run a program to its end, in a folder; what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        *command,
        cwd=folder,
        env={**os.environ, "DUOLOGUE_URL": app.url, "PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = said.decode()
    assert process.returncode == status, text
    return text.splitlines()


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
async def test_each_program_of_the_page_runs(gateway: App, number: int, tmp_path: Path) -> None:
    program = PROGRAMS[number]
    spoken(tmp_path / "question.wav")
    assert "localhost:8080" in program
    program = program.replace("localhost:8080", gateway.url)
    lines = await printed(gateway, "-c", program, folder=tmp_path)
    for expected in PRINTED[number]:
        assert any(re.fullmatch(expected, line) for line in lines), lines


def test_every_program_has_something_that_it_prints() -> None:
    assert len(PROGRAMS) == len(PRINTED)


async def test_the_shortest_example_asks(gateway: App) -> None:
    example = str(ROOT / "examples" / "ask.py")
    assert await printed(gateway, example, "What", "is it?") == ["Paris."]


@pytest.mark.parametrize(
    ("example", "code"),
    [
        ("ask.py", "stage_failed"),
        ("hello_client.py", "stage_failed"),
        ("voice_agent.py", "no_recogniser"),
    ],
)
async def test_examples_say_why_there_is_no_answer(
    dumb_gateway: App, example: str, code: str, tmp_path: Path
) -> None:
    arguments = ["--wav", spoken(tmp_path / "q.wav")] if example == "voice_agent.py" else []
    program = str(ROOT / "examples" / example)
    lines = await printed(dumb_gateway, program, *arguments, status=1)
    assert len(lines) == 1
    assert lines[0].startswith(f"{code}: ")


async def test_hello_interrupts_an_answer_and_shows_what_was_heard(
    gateway: App, tmp_path: Path
) -> None:
    program = str(ROOT / "examples" / "hello_client.py")
    lines = await printed(gateway, program)
    assert lines[0] == "What was said, and what was heard of it:"
    assert "  caller: And in one word?" in lines


async def test_the_voice_agent_hears_a_file_looks_up_a_price_and_writes_its_answer(
    gateway: App, tmp_path: Path
) -> None:
    question, answer = spoken(tmp_path / "question.wav"), tmp_path / "answer.wav"
    example = str(ROOT / "examples" / "voice_agent.py")
    lines = await printed(gateway, example, "--wav", question, "--out", str(answer))
    assert lines == ["waiter: It is tea costs two euros."]
    with wave.open(str(answer)) as file:
        assert file.getnframes() > 12_000


async def test_a_call_without_a_telephone_hears_the_server(gateway: App, tmp_path: Path) -> None:
    question, answer = spoken(tmp_path / "question.wav"), tmp_path / "answer.wav"
    example = str(ROOT / "examples" / "twilio" / "caller.py")
    (line,) = await printed(gateway, example, question, str(answer))
    assert re.fullmatch(rf"\d+\.\d s of the server's voice are in {answer}", line)
    with wave.open(str(answer)) as file:
        assert (file.getframerate(), file.getnchannels()) == (8000, 1)
        assert file.getnframes() > 4_000


def spoken(path: Path) -> str:
    """Write a file in which somebody says something."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(24_000)
        file.writeframes(speech(700))
    return str(path)
