from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import CsmForConditionalGeneration

from duologue.core.clock import SystemClock
from duologue.core.errors import ConfigError, EngineError
from duologue.engines.payloads import AudioChunk, SpeakText
from duologue.engines.runners.contract import Job
from duologue.engines.runners.registry import RunnerRegistry
from duologue.engines.runners.speech.csm import CsmSettings, load_codec, load_talker
from duologue.engines.worker_model import WorkerModel
from tests.fakes.tiny_speech.csm import BOOKS
from tests.fakes.tiny_speech.judge import in_chunks, spoken

pytestmark = pytest.mark.speech

Tiny = Callable[[str], Path]
TEXT, FRAMES = "Hello there, you.", 24


def settings(folder: Path, **more: object) -> CsmSettings:
    return CsmSettings(folder=str(folder), temperature=0, slots=3, max_frames=FRAMES, **more)


@cache
def theirs(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Codes and sound that the library makes at once."""
    model = CsmForConditionalGeneration.from_pretrained(folder).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    with torch.no_grad():
        made = model.generate(
            torch.tensor([tokenizer.encode(f"[0]{TEXT}").ids]),
            do_sample=False,
            depth_decoder_do_sample=False,
            max_new_tokens=FRAMES,
            output_audio=True,
            return_dict_in_generate=True,
        )
    return made.sequences[0].numpy(), made.audio[0].numpy()


def test_it_draws_the_codes_that_the_library_draws(tiny_speech: Tiny) -> None:
    talker = load_talker(settings(tiny_speech("csm")))
    assert talker.books == BOOKS
    beside = talker.begin(SpeakText("something else", 1))
    talker.next_frames([beside])
    utterance = talker.begin(SpeakText(TEXT, 1))
    frames = []
    for _ in range(FRAMES):
        frame, _ = talker.next_frames([utterance, beside])
        assert frame is not None
        frames.append(frame)
    codes, _ = theirs(tiny_speech("csm"))
    assert np.concatenate(frames).tolist() == codes.tolist()
    assert len({tuple(each) for each in codes.tolist()}) > 4


@pytest.mark.parametrize("chunk", [(1, 1), (1, 5), (3, 4)], ids=str)
def test_speech_is_the_librarys_at_every_border(tiny_speech: Tiny, chunk: tuple[int, int]) -> None:
    first, usual = chunk
    of = settings(tiny_speech("csm"), first_frames=first, chunk_frames=usual)
    codes, expected = theirs(tiny_speech("csm"))
    made = in_chunks(load_codec(of), codes.astype(np.uint16), first, usual)
    np.testing.assert_allclose(made, expected, atol=5e-6)


@pytest.mark.parametrize("first_audio", [False, True], ids=["codec", "ahead"])
def test_the_stages_say_what_the_library_says(tiny_speech: Tiny, first_audio: bool) -> None:
    _, expected = theirs(tiny_speech("csm"))
    fused = spoken(load_talker, load_codec, settings(tiny_speech("csm")), TEXT)
    np.testing.assert_allclose(fused, expected, atol=1 / 32_000)
    two = settings(tiny_speech("csm"), first_audio=first_audio)
    made = spoken(load_talker, load_codec, two, TEXT, stages=2)
    np.testing.assert_allclose(made, fused, atol=2 / 32_000)


def test_voices_are_numbers(tiny_speech: Tiny) -> None:
    talker = load_talker(settings(tiny_speech("csm")))
    said = []
    for voice in ("0", "default", "7"):
        utterance = talker.begin(SpeakText(TEXT, 1, voice))
        frames = [talker.next_frames([utterance])[0] for _ in range(3)]
        said.append(np.concatenate([each for each in frames if each is not None]).tolist())
        talker.end(utterance)
    assert said[0] == said[1] != said[2]
    with pytest.raises(EngineError, match="alloy"):
        talker.begin(SpeakText(TEXT, 1, "alloy"))


def test_a_folder_of_another_model_is_refused(tiny_speech: Tiny) -> None:
    with pytest.raises(ConfigError):
        load_talker(settings(tiny_speech("qwen3_omni")))
    with pytest.raises(ConfigError, match="codec_config"):
        load_codec(settings(tiny_speech("qwen3_omni")))


def said_by(model: WorkerModel) -> bytes:
    """All that the runner says; nothing is left that holds it."""
    assert model.runner is not None
    job = Job("a", deque([SpeakText(TEXT, 1)]), input_ended=True)
    model.runner.open(job)
    said = b""
    while model.runner.ready(job):
        (step,) = model.runner.step([job])
        assert step.error is None
        said += b"".join(each.pcm for each in step.outputs if isinstance(each, AudioChunk))
    model.runner.close(job)
    return said


def test_asleep_nothing_of_it_is_left_and_it_wakes_with_the_same_voice(tiny_speech: Tiny) -> None:
    given = {"folder": str(tiny_speech("csm")), "temperature": 0, "max_frames": FRAMES}
    model = WorkerModel(
        lambda wake, _announce: RunnerRegistry.installed().build("csm", given, wake),
        lambda: None,
        lambda _phase: None,
        SystemClock(),
    )
    model.load()
    first = said_by(model)
    left = weakref.ref(model.runner)
    assert first
    assert model.sleep(1).level == 2
    assert left() is None
    assert model.wake().level == 0
    assert said_by(model) == first
