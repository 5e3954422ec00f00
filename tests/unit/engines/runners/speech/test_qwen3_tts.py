"""Compared with the package ``qwen-tts``, in a Python of its own (make check-qwen-tts)."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from duologue.codecs.pcm import pcm_to_float
from duologue.core.errors import ConfigError, EngineError
from duologue.core.fence import SESSION_LANE, Fence
from duologue.engines.orchestrator.engine import Engine
from duologue.engines.payloads import AudioChunk, SpeakText
from duologue.engines.pipeline import load_pipelines
from duologue.engines.ports import Ended, EngineEvent, Outcome, Output, Request
from duologue.engines.runners.speech.qwen3_tts import Qwen3TtsSettings, load_codec, load_talker
from duologue.engines.settings import EngineSettings
from duologue.telemetry import LabelSets, Metrics
from tests.conftest import QWEN_TTS_PYTHON, ROOT
from tests.fakes.tiny_speech.judge import in_chunks, spoken
from tests.fakes.tiny_speech.qwen3_tts_text import EXPECTED, FRAMES, INSTRUCTIONS, TEXT

pytestmark = pytest.mark.qwen_tts

ASKED = [("vivian", "auto", ""), ("eric", "auto", ""), ("vivian", "english", INSTRUCTIONS)]

PIPELINE = """
name: voice
stages:
  - name: voice
    runner: qwen3_tts
    interpreter: {python}
    env: {{PYTHONPATH: {root}}}
    settings: {{folder: {folder}, temperature: 0, other_temperature: 0, max_frames: {frames},
               slots: 1, threads: 1}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint, and what the package makes of it."""
    import subprocess

    place = tmp_path_factory.mktemp("qwen3_tts")
    program = [QWEN_TTS_PYTHON, "-W", "ignore", "-m", "tests.fakes.tiny_speech.qwen3_tts", place]
    subprocess.run(program, cwd=ROOT, check=True, capture_output=True)
    return place


def settings(folder: Path, **more: object) -> Qwen3TtsSettings:
    return Qwen3TtsSettings(
        folder=str(folder),
        temperature=0,
        other_temperature=0,
        slots=2,
        **{"max_frames": FRAMES, **more},
    )


@pytest.mark.parametrize("index", range(len(ASKED)))
def test_it_draws_the_codes_that_the_package_draws(folder: Path, index: int) -> None:
    voice, language, instructions = ASKED[index]
    expected = np.load(folder / EXPECTED)[f"codes{index}"]
    talker = load_talker(settings(folder, language=language))
    utterance = talker.begin(SpeakText(TEXT, 1, voice, instructions=instructions))
    frames = [talker.next_frames([utterance])[0] for _ in range(len(expected))]
    made = np.concatenate([each for each in frames if each is not None])
    assert made.tolist() == expected.tolist()
    assert len({tuple(each) for each in made.tolist()}) > 4


@pytest.mark.parametrize("chunk", [(1, 1), (1, 5), (3, 4)], ids=str)
def test_speech_is_the_packages_at_every_border(folder: Path, chunk: tuple[int, int]) -> None:
    first, usual = chunk
    expected = np.load(folder / EXPECTED)
    codec = load_codec(settings(folder, first_frames=first, chunk_frames=usual))
    made = in_chunks(codec, expected["codes0"].astype(np.uint16), first, usual)
    assert len(made) == 1920 * len(expected["codes0"])
    np.testing.assert_allclose(made, expected["sound0"], atol=2e-5)
    assert 0.01 < np.abs(made).max() < 1


@pytest.mark.parametrize("first_audio", [False, True], ids=["codec", "ahead"])
def test_the_stages_say_what_the_package_says(folder: Path, first_audio: bool) -> None:
    expected = np.load(folder / EXPECTED)["sound0"]
    two = settings(folder, first_audio=first_audio, voice="vivian")
    made = spoken(load_talker, load_codec, two, TEXT, stages=2)
    np.testing.assert_allclose(made, expected, atol=2 / 32_000)


class Listener:
    def __init__(self) -> None:
        self.pcm = b""
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    def on_engine_event(self, event: EngineEvent) -> None:
        match event:
            case Output(payload=AudioChunk(pcm=pcm)):
                self.pcm += pcm
            case Ended():
                self.ended.set_result(event)


async def test_a_worker_with_a_python_of_its_own_speaks(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "voice.yaml"
    text = PIPELINE.format(python=QWEN_TTS_PYTHON, root=ROOT, folder=folder, frames=FRAMES)
    await asyncio.to_thread(path.write_text, text)
    pipelines = await asyncio.to_thread(load_pipelines, [path])
    engine = Engine(pipelines, EngineSettings(), Metrics(LabelSets()))
    await engine.start()
    listener = Listener()
    clause = SpeakText(TEXT, len(TEXT), "vivian")
    engine.submit(Request("r", "voice", Fence("s", SESSION_LANE, 0), first=clause), listener)
    ended = await listener.ended
    await engine.stop()
    assert ended.outcome is Outcome.COMPLETED, ended
    expected = np.load(folder / EXPECTED)["sound0"]
    np.testing.assert_allclose(pcm_to_float(listener.pcm), expected, atol=2 / 32_000)


def test_voices_and_languages_are_the_checkpoints(folder: Path) -> None:
    with pytest.raises(EngineError, match="eric, vivian"):
        load_talker(settings(folder)).begin(SpeakText(TEXT, 1, "alloy"))
    with pytest.raises(ConfigError, match="english"):
        load_talker(settings(folder, language="klingon"))


def test_a_checkpoint_of_another_kind_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "tts_model_type": "base"}))
    with pytest.raises(ConfigError, match="base"):
        load_talker(settings(copy))
    (copy / "speech_tokenizer/config.json").write_text('{"model_type": "qwen3_tts_tokenizer_25hz"}')
    with pytest.raises(ConfigError, match="25hz"):
        load_codec(settings(copy))
