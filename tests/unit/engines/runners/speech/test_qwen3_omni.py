from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.models.code_talker.talker import CodeTalker
from duologue.engines.payloads import SpeakText
from duologue.engines.runners.speech.qwen3_omni import (
    Qwen3OmniSettings,
    load_codec,
    load_talker,
)
from tests.fakes.tiny_speech.judge import in_chunks, spoken
from tests.fakes.tiny_speech.omni_judge import voiced

pytestmark = pytest.mark.speech

Tiny = Callable[[str], Path]
ASKED, TEXT, FRAMES = "Read this aloud.", "Hello there, you.", 30


def settings(folder: Path, **more: object) -> Qwen3OmniSettings:
    return Qwen3OmniSettings(
        folder=str(folder),
        temperature=0,
        other_temperature=0,
        slots=3,
        **{"max_frames": FRAMES, "asked": ASKED, **more},
    )


def theirs(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the library's talker, and their sound at once."""
    return voiced(folder, ASKED, TEXT, FRAMES)


def drawn(talker: CodeTalker, clause: SpeakText, count: int) -> list[list[int]]:
    utterance = talker.begin(clause)
    frames: list[list[int]] = []
    while len(frames) < count and (frame := talker.next_frames([utterance])[0]) is not None:
        frames += frame.tolist()
    talker.end(utterance)
    return frames


def test_it_draws_the_codes_that_the_library_draws(tiny_speech: Tiny) -> None:
    talker = load_talker(settings(tiny_speech("qwen3_omni")))
    codes, _ = theirs(tiny_speech("qwen3_omni"))
    assert len(codes) == FRAMES > len(TEXT)
    assert drawn(talker, SpeakText(TEXT, 1), FRAMES) == codes.tolist()
    assert len({tuple(each) for each in codes.tolist()}) > 4


@pytest.mark.parametrize("chunk", [(1, 1), (1, 5), (3, 4)], ids=str)
def test_speech_is_the_librarys_at_every_border(tiny_speech: Tiny, chunk: tuple[int, int]) -> None:
    first, usual = chunk
    of = settings(tiny_speech("qwen3_omni"), first_frames=first, chunk_frames=usual)
    codes, expected = theirs(tiny_speech("qwen3_omni"))
    made = in_chunks(load_codec(of), codes.astype(np.uint16), first, usual)
    assert len(made) == 1920 * FRAMES - 555
    np.testing.assert_allclose(made, expected, atol=2e-5)


@pytest.mark.parametrize("first_audio", [False, True], ids=["codec", "ahead"])
def test_the_stages_say_what_the_library_says(tiny_speech: Tiny, first_audio: bool) -> None:
    folder = tiny_speech("qwen3_omni")
    _, expected = theirs(folder)
    fused = spoken(load_talker, load_codec, settings(folder), TEXT)
    np.testing.assert_allclose(fused, expected, atol=2 / 32_000)
    two = spoken(load_talker, load_codec, settings(folder, first_audio=first_audio), TEXT, stages=2)
    np.testing.assert_allclose(two, fused, atol=2 / 32_000)


def test_an_end_code_ends_the_utterance(tiny_speech: Tiny, tmp_path: Path) -> None:
    folder = tmp_path / "ends"
    shutil.copytree(tiny_speech("qwen3_omni"), folder)
    codes, _ = theirs(tiny_speech("qwen3_omni"))
    first = codes[:, 0].tolist()
    at = next(place for place in range(4, FRAMES) if first[place] not in first[:place])
    config = json.loads((folder / "config.json").read_text())
    config["talker_config"]["codec_eos_token_id"] = first[at]
    (folder / "config.json").write_text(json.dumps(config))
    frames = drawn(load_talker(settings(folder)), SpeakText(TEXT, 1), FRAMES)
    assert frames == codes[:at].tolist()


def test_a_voice_is_one_of_the_checkpoints(tiny_speech: Tiny) -> None:
    talker = load_talker(settings(tiny_speech("qwen3_omni")))
    ethan = drawn(talker, SpeakText(TEXT, 1, "Ethan"), 4)
    assert ethan == drawn(talker, SpeakText(TEXT, 1), 4)
    assert ethan != drawn(talker, SpeakText(TEXT, 1, "chelsie"), 4)
    with pytest.raises(EngineError, match="chelsie, ethan"):
        talker.begin(SpeakText(TEXT, 1, "alloy"))


def test_instructions_are_what_was_asked(tiny_speech: Tiny) -> None:
    talker = load_talker(settings(tiny_speech("qwen3_omni")))
    told = drawn(talker, SpeakText(TEXT, 1, instructions="Whisper."), 4)
    asked = load_talker(settings(tiny_speech("qwen3_omni"), asked="Whisper."))
    assert told == drawn(asked, SpeakText(TEXT, 1), 4)


def test_draws_follow_the_seed(tiny_speech: Tiny) -> None:
    def said(seed: int) -> list[list[int]]:
        of = Qwen3OmniSettings(folder=str(tiny_speech("qwen3_omni")), slots=1, seed=seed)
        return drawn(load_talker(of), SpeakText(TEXT, 1), 6)

    assert said(1) == said(1) != said(2)


def test_a_folder_of_another_model_is_refused(tiny_speech: Tiny) -> None:
    with pytest.raises(ConfigError, match="talker_config"):
        load_talker(settings(tiny_speech("csm")))
