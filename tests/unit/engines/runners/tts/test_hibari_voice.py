"""The real model: it is part of the installed package, 8 MB, and fast."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import numpy as np
import pytest

from duologue.core.errors import ConfigError
from duologue.engines.runners.tts.hibari_voice import RATE_HZ, HibariVoice


@pytest.fixture(scope="module")
def voice() -> HibariVoice:
    return HibariVoice("heart", threads=1)


def test_speech_begins_and_ends_at_once_without_a_click(voice: HibariVoice) -> None:
    for text in ("Hello.", "Sure,", "The capital of France is Paris."):
        samples = voice.speak(text, 1.0, 0).samples
        loud = np.flatnonzero(np.abs(samples) > 0.01)
        assert loud[0] < 0.05 * RATE_HZ
        assert len(samples) - loud[-1] < 0.12 * RATE_HZ
        assert abs(samples[0]) < 1e-3
        assert abs(samples[-1]) < 1e-3


def test_word_ends_are_in_order_and_fill_the_utterance(voice: HibariVoice) -> None:
    text = "The quick brown fox jumps over the lazy dog."
    utterance = voice.speak(text, 1.0, 0)
    words = [text[:offset].split()[-1] for offset, _ in utterance.word_ends]
    assert words == text.split()
    ends = [0, *(end for _, end in utterance.word_ends)]
    lengths_s = np.diff(ends) / RATE_HZ
    assert (lengths_s > 0.04).all()
    assert (lengths_s < 0.8).all()
    assert 0 <= len(utterance.samples) - ends[-1] < 0.05 * RATE_HZ


def test_the_marked_end_of_a_word_is_where_it_ends_in_the_sound(voice: HibariVoice) -> None:
    """A comma makes a pause; the mark of the word before it lies at its beginning."""
    utterance = voice.speak("I like green apples, and he likes pears.", 1.0, 0)
    end = dict(utterance.word_ends)[len("I like green apples,")]
    loudness = np.abs(utterance.samples)
    assert loudness[end - 3600 : end].mean() > 0.01
    assert loudness[end + 480 : end + 1680].mean() < 0.003


def test_the_same_text_sounds_the_same(voice: HibariVoice) -> None:
    once, twice = (voice.speak("Good morning.", 1.0, 0).samples for _ in range(2))
    assert (once == twice).all()


def test_faster_is_shorter(voice: HibariVoice) -> None:
    normal = len(voice.speak("It is a lovely day.", 1.0, 0).samples)
    fast = len(voice.speak("It is a lovely day.", 1.5, 0).samples)
    assert 0.55 * normal < fast < 0.8 * normal


def test_between_two_sentences_is_the_wanted_silence(voice: HibariVoice) -> None:
    together = voice.speak("Hello. Goodbye.", 1.0, 2400)
    alone = [len(voice.speak(text, 1.0, 0).samples) for text in ("Hello.", "Goodbye.")]
    assert len(together.samples) == sum(alone) + 2400
    assert not together.samples[alone[0] : alone[0] + 2400].any()
    hello, goodbye = (end for _, end in together.word_ends)
    assert alone[0] - 1200 < hello <= alone[0]
    assert goodbye > alone[0] + 2400


def test_words_that_are_said_as_several_have_no_place(voice: HibariVoice) -> None:
    assert voice.speak("It is 1234567 now.", 1.0, 0).word_ends == ()


@pytest.mark.parametrize("text", ["", " ", "...", "\u4f60\u597d"])
def test_what_cannot_be_said_is_silent(voice: HibariVoice, text: str) -> None:
    assert len(voice.speak(text, 1.0, 0).samples) < RATE_HZ


def test_loudness_varies_little_from_clause_to_clause(voice: HibariVoice) -> None:
    levels = []
    for text in ("Sure,", "Of course!", "It takes about eight minutes to boil an egg.", "No."):
        samples = voice.speak(text, 1.0, 0).samples
        blocks = samples[: len(samples) // 240 * 240].reshape(-1, 240)
        rms = np.sqrt((blocks**2).mean(axis=1))
        active = rms[rms > rms.max() / 10]
        levels.append(20 * np.log10(np.sqrt((active**2).mean())))
    assert max(levels) - min(levels) < 5


def test_no_voice_is_ever_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HIBARI_HOME", str(tmp_path))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(ConfigError, match="emma"):
        HibariVoice("emma", threads=1)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_voice_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"nobody.*heart"):
        HibariVoice("nobody", threads=1)
