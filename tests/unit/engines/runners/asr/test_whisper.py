from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.payloads import (
    AudioChunk,
    DecodeSpeech,
    HeardDetails,
    HeardWord,
    ListenOptions,
    Payload,
    TextDelta,
    Transcript,
)
from duologue.engines.runners.asr.whisper import WHISPER, WhisperRunner, WhisperSettings, build
from duologue.engines.runners.asr.whisper_model import Floats, Hypothesis
from duologue.engines.runners.asr.words import TimedWord
from duologue.engines.runners.contract import Job, Step

RATE = 16_000
SETTINGS = WhisperSettings(model_path="")


@dataclass(frozen=True)
class Call:
    frames: int
    beam_size: int
    speech_s: float


class Model:
    """Hears in every window how long it is and which call it was: `a1.50`, `b3.00`, ...

    Args:
        log_probs: Of the calls, in order; the last number repeats.
        repeats: Says everything twice in the short window.
    """

    def __init__(self, *log_probs: float, no_speech: float = 0.01, repeats: bool = False) -> None:
        self.calls: list[Call] = []
        self.options: list[ListenOptions | None] = []
        self.log_probs = log_probs or (-0.2,)
        self.no_speech = no_speech
        self.repeats = repeats

    def __call__(
        self,
        features: Floats,
        *,
        beam_size: int,
        speech_s: float,
        options: ListenOptions | None = None,
    ) -> Hypothesis:
        self.options.append(options)
        assert features.shape[:2] == (1, 80)
        assert features.flags.c_contiguous
        self.calls.append(Call(features.shape[2], beam_size, speech_s))
        name = "abcdefghijklmnopqrstuvwxyz"[len(self.calls) - 1]
        text = f"{name}{speech_s:.2f}"
        if self.repeats and features.shape[2] == 1000:
            text = f"{text} {text}"
        log_prob = self.log_probs[min(len(self.calls), len(self.log_probs)) - 1]
        words = [TimedWord(text, 0.5, 1.25, 0.75, (7, 8))] if options and options.words else []
        return Hypothesis(text, log_prob, self.no_speech, words)


def sound(seconds: float, level: float = 8000.0) -> bytes:
    noise = np.random.default_rng(5).normal(0, level, int(seconds * RATE))
    return noise.astype("<i2").tobytes()


def speech(start_s: float, end_s: float, level: float = 8000.0) -> AudioChunk:
    return AudioChunk(sound(end_s - start_s, level), RATE, int(start_s * RATE))


def final(end_s: float) -> DecodeSpeech:
    return DecodeSpeech("final", int(end_s * RATE))


def partial(end_s: float) -> DecodeSpeech:
    return DecodeSpeech("partial", int(end_s * RATE))


def opened(runner: WhisperRunner, name: str, *inputs: Payload) -> Job:
    job = Job(name)
    runner.open(job)
    job.inputs.extend(inputs)
    return job


def text_of(step: Step) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in step.outputs if isinstance(each, Transcript)]


def run(runner: WhisperRunner, *jobs: Job) -> list[tuple[str, str, str]]:
    """Step until nothing is left to do; returns job, kind and text of each answer, in order."""
    answers = []
    while ready := [job for job in jobs if runner.ready(job)]:
        for job, step in zip(ready, runner.step(ready), strict=True):
            assert step.error is None
            answers += [(job.id, *answer) for answer in text_of(step)]
    return answers


@pytest.mark.parametrize(
    ("request_", "beam_size", "length_s", "frames"),
    [
        *((final, 2, 1.5, 1000), (final, 2, 9.4, 1000), (final, 2, 9.6, 1500)),
        *((partial, 1, 1.5, 600), (partial, 1, 5.4, 600), (partial, 1, 5.6, 1000)),
        (partial, 1, 9.6, 1500),
    ],
)
def test_audio_is_decoded_in_the_shortest_window_and_finals_with_a_beam(
    request_: Callable[[float], DecodeSpeech], beam_size: int, length_s: float, frames: int
) -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    asked = request_(length_s)
    job = opened(runner, "a", speech(0, length_s), asked)
    (step,) = runner.step([job])
    assert step.outputs == (Transcript(f"a{length_s:.2f}", asked.kind, asked.end_sample),)
    assert model.calls == [Call(frames, beam_size, length_s)]
    assert not runner.ready(job)


def test_a_final_that_is_doubtful_is_decoded_again_in_the_long_window() -> None:
    model = Model(-0.41, -0.3)
    runner = WhisperRunner(SETTINGS, model)
    assert run(runner, opened(runner, "a", speech(0, 2), final(2))) == [("a", "final", "b2.00")]
    assert model.calls == [Call(1000, 2, 2.0), Call(1500, 2, 2.0)]


def test_a_final_that_repeats_itself_is_decoded_again_in_the_long_window() -> None:
    model = Model(repeats=True)
    runner = WhisperRunner(SETTINGS, model)
    assert run(runner, opened(runner, "a", speech(0, 2), final(2))) == [("a", "final", "b2.00")]
    assert [call.frames for call in model.calls] == [1000, 1500]


def test_a_partial_is_decoded_once_and_says_what_it_repeats_only_once() -> None:
    model = Model(-0.9, repeats=True)
    runner = WhisperRunner(SETTINGS, model)
    answers = run(runner, opened(runner, "a", speech(0, 2), partial(2)))
    assert answers == [("a", "partial", "a2.00")]
    assert len(model.calls) == 1


def test_the_long_window_is_not_doubted() -> None:
    model = Model(-0.9)
    runner = WhisperRunner(SETTINGS, model)
    assert run(runner, opened(runner, "a", speech(0, 11), final(11))) == [("a", "final", "a11.00")]
    assert len(model.calls) == 1


def test_audio_after_the_end_that_was_asked_for_does_not_count() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    run(runner, opened(runner, "a", speech(0, 3), final(1.25)))
    assert model.calls[0].speech_s == 1.25


def test_audio_alone_decodes_nothing() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    job = opened(runner, "a", speech(0, 1), speech(1, 2))
    assert run(runner, job) == []
    assert not job.inputs


def test_of_several_requests_that_wait_the_newest_is_answered() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    inputs = [speech(0, 1), final(1), speech(1, 2), partial(2), speech(2, 3), partial(3)]
    assert run(runner, opened(runner, "a", *inputs)) == [("a", "partial", "a3.00")]
    assert len(model.calls) == 1


def test_finals_go_before_partials_of_other_jobs_and_older_before_newer() -> None:
    runner = WhisperRunner(SETTINGS, Model())
    jobs = [
        opened(runner, "p", speech(0, 1), partial(1)),
        opened(runner, "q", speech(0, 1), partial(1)),
        opened(runner, "f", speech(0, 1), final(1)),
        opened(runner, "g", speech(0, 1), final(1)),
    ]
    assert [name for name, _, _ in run(runner, *jobs)] == ["f", "g", "p", "q"]


def test_a_job_that_asks_for_partials_without_end_does_not_starve_a_final() -> None:
    runner = WhisperRunner(SETTINGS, Model())
    chatty = opened(runner, "p", speech(0, 1), partial(1))
    runner.step([chatty])
    chatty.inputs.extend([speech(1, 2), partial(2)])
    quiet = opened(runner, "f", speech(0, 1), final(1))
    first, second = runner.step([chatty, quiet])
    assert text_of(first) == []
    assert text_of(second) == [("final", "b1.00")]


def test_a_second_final_after_mere_silence_is_answered_without_the_model() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    job = opened(runner, "a", speech(0, 2), speech(2, 2.1, level=20), final(2.1))
    assert run(runner, job) == [("a", "final", "a2.10")]
    job.inputs.extend([speech(2.1, 2.5, level=20), final(2.5), partial(2.5)])
    assert run(runner, job) == [("a", "partial", "a2.10")]
    job.inputs.append(final(2.4))
    assert run(runner, job) == [("a", "final", "a2.10")]
    assert len(model.calls) == 1


def test_speech_after_a_pause_is_decoded_anew() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    job = opened(runner, "a", speech(0, 2), final(2))
    run(runner, job)
    job.inputs.extend([speech(2, 2.5, level=20), speech(2.5, 3), final(3)])
    assert run(runner, job) == [("a", "final", "b3.00")]


def test_a_partial_does_not_stand_in_for_a_final() -> None:
    runner = WhisperRunner(SETTINGS, Model())
    job = opened(runner, "a", speech(0, 2), partial(2))
    run(runner, job)
    job.inputs.append(final(2))
    assert run(runner, job) == [("a", "final", "b2.00")]


@pytest.mark.parametrize(
    ("log_prob", "no_speech", "text"),
    [(-0.99, 0.49, "b1.00"), (-1.01, 0.0, ""), (-0.1, 0.51, "")],
)
def test_what_is_probably_no_speech_has_no_text(
    log_prob: float, no_speech: float, text: str
) -> None:
    runner = WhisperRunner(SETTINGS, Model(log_prob, no_speech=no_speech))
    job = opened(runner, "a", speech(0, 1), final(1))
    assert run(runner, job) == [("a", "final", text)]


def test_next_to_nothing_is_not_decoded() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    job = opened(runner, "a", final(0), speech(0, 0.04), final(0.04))
    assert run(runner, job) == [("a", "final", "")]
    assert model.calls == []


def long_talk(seconds: int) -> Sequence[AudioChunk]:
    """Speech with a short hush before every third second."""
    chunks: list[AudioChunk] = []
    for second in range(seconds):
        loud_until = second + (0.7 if second % 3 == 2 else 1.0)
        chunks.append(speech(second, loud_until))
        if loud_until < second + 1:
            chunks.append(speech(loud_until, second + 1, level=20))
    return chunks


def test_a_long_utterance_is_decoded_in_segments_that_are_joined() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    ((_, _, text),) = run(runner, opened(runner, "a", *long_talk(40), final(40)))
    lengths = [call.speech_s for call in model.calls]
    assert text == " ".join(f"{name}{s:.2f}" for name, s in zip("abcd", lengths, strict=False))
    assert sum(lengths) == pytest.approx(40)
    assert all(7 <= length <= 14.5 for length in lengths[:-1])
    # Each cut lies in a hush: in the last 0.3 s of every third second.
    ends = np.cumsum(lengths)[:-1] % 3
    assert all(2.7 < end < 3 for end in ends)
    assert {call.beam_size for call in model.calls} == {2}


def test_a_long_utterance_is_cut_while_it_goes_on_and_memory_stays_bounded() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    job = opened(runner, "a")
    longest = 0
    for chunk in long_talk(60):
        job.inputs.append(chunk)
        run(runner, job)
        longest = max(longest, len(job.state.utterance.frames(job.state.utterance.position(10**9))))
    assert longest < 1600
    decoded = len(model.calls)
    assert decoded >= 3
    job.inputs.append(final(60))
    run(runner, job)
    assert len(model.calls) == decoded + 1


def test_a_recording_in_one_piece_is_cut_too() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    run(runner, opened(runner, "a", AudioChunk(sound(50), RATE), final(50)))
    assert sum(call.speech_s for call in model.calls) == pytest.approx(50)
    assert max(call.speech_s for call in model.calls) <= 14.5


def test_what_was_asked_before_a_segment_is_full_is_answered_before_it_is_closed() -> None:
    runner = WhisperRunner(SETTINGS, Model())
    job = opened(runner, "a", speech(0, 10), final(10), speech(10, 16))
    assert run(runner, job)[0] == ("a", "final", "a10.00")


def test_partials_show_the_closed_segments_too() -> None:
    runner = WhisperRunner(SETTINGS, Model())
    ((_, kind, text),) = run(runner, opened(runner, "a", *long_talk(18), partial(18)))
    assert kind == "partial"
    assert text.startswith("a1")
    assert text.split()[1].startswith("b")


def test_finals_of_others_go_before_closing_a_segment_and_that_before_partials() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    talker = opened(runner, "long", *long_talk(16))
    others = [
        opened(runner, "p", speech(0, 1), partial(1)),
        opened(runner, "f", speech(0, 2), final(2)),
    ]
    assert [answer[0] for answer in run(runner, talker, *others)] == ["f", "p"]
    lengths = [call.speech_s for call in model.calls]
    assert lengths[0] == 2
    assert lengths[1] > 7
    assert lengths[2] == 1


def test_the_end_of_input_answers_what_was_asked() -> None:
    runner = WhisperRunner(SETTINGS, Model())
    job = opened(runner, "a", AudioChunk(bytes(2 * 24_000), 24_000), DecodeSpeech("final", 24_000))
    job.input_ended = True
    assert run(runner, job) == [("a", "final", "a1.00")]


def test_a_cancelled_job_is_not_decoded() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    job = opened(runner, "a", speech(0, 1), final(1))
    job.cancelled = True
    (step,) = runner.step([job])
    assert step.outputs == ()
    assert model.calls == []


@pytest.mark.parametrize(
    ("payload", "word"),
    [(TextDelta("hm"), "TextDelta"), (AudioChunk(bytes(2), RATE, 10**9), "1000000000")],
)
def test_what_cannot_be_heard_fails_its_job_alone(payload: Payload, word: str) -> None:
    runner = WhisperRunner(SETTINGS, Model())
    failed, good = runner.step(
        [
            opened(runner, "a", speech(0, 1), payload, final(1)),
            opened(runner, "b", speech(0, 1), final(1)),
        ]
    )
    assert failed.error is not None
    assert word in failed.error.message
    assert text_of(good) == [("final", "a1.00")]


def test_warming_up_uses_all_windows() -> None:
    model = Model()
    WhisperRunner(SETTINGS, model).warm_up()
    assert [(call.frames, call.beam_size) for call in model.calls] == [
        *((1500, 2), (1000, 2), (600, 1))
    ]


def test_a_closed_job_is_forgotten() -> None:
    runner = WhisperRunner(SETTINGS, Model())
    job = opened(runner, "a", speech(0, 1))
    runner.step([job])
    runner.close(job)
    assert job.state is None


def test_settings_are_checked() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"short_window_s is 20\.0"):
        msgspec.convert({"model_path": "x", "short_window_s": 20.0}, WHISPER.settings)
    with pytest.raises(msgspec.ValidationError, match=r"partial_window_s is 12\.0"):
        msgspec.convert({"model_path": "x", "partial_window_s": 12.0}, WHISPER.settings)
    with pytest.raises(msgspec.ValidationError, match="beam"):
        msgspec.convert({"model_path": "x", "beam": 5}, WHISPER.settings)


def test_a_missing_model_refuses_to_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="models pull"):
        build(WhisperSettings(model_path=str(tmp_path)))


def asked(end_s: float, options: ListenOptions) -> DecodeSpeech:
    return DecodeSpeech("final", int(end_s * RATE), options)


def test_options_reach_the_model_and_the_answer_has_details() -> None:
    model = Model()
    runner = WhisperRunner(SETTINGS, model)
    options = ListenOptions(words=True, prompt="Before.")
    job = opened(runner, "a", speech(2, 4), asked(4, options))

    (step,) = runner.step([job])

    assert model.options == [options]
    word = HeardWord("a2.00", int(2.5 * RATE), int(3.25 * RATE), 0.75, (7, 8))
    details = HeardDetails((word,), -0.2, 0.01)
    assert list(step.outputs) == [Transcript("a2.00", "final", 4 * RATE, details)]


def test_c74_what_was_no_speech_has_no_words_either() -> None:
    runner = WhisperRunner(SETTINGS, Model(no_speech=0.9))
    job = opened(runner, "a", speech(0, 2), asked(2, ListenOptions(words=True)))

    (transcript,) = runner.step([job])[0].outputs

    assert isinstance(transcript, Transcript)
    assert transcript.details == HeardDetails((), -0.2, 0.9)
    assert transcript.text == ""


def test_with_options_audio_must_fit_in_one_window() -> None:
    runner = WhisperRunner(SETTINGS, Model())
    job = opened(runner, "a", speech(0, 20), asked(20, ListenOptions(words=True)))

    steps = [runner.step([job])[0] for _ in range(2)]

    assert steps[0].error is None
    assert steps[1].error is not None
    assert "14.5 s: send it in parts" in steps[1].error.message


def test_what_a_model_cannot_do_fails_the_one_who_asked() -> None:
    class Unable(Model):
        def __call__(self, features: Floats, **how: object) -> Hypothesis:
            raise EngineError("this model cannot translate", code="unsupported")

    runner = WhisperRunner(SETTINGS, Unable())
    job = opened(runner, "a", speech(0, 2), asked(2, ListenOptions(translate=True)))
    other = opened(runner, "b", speech(0, 2))

    failed, fine = runner.step([job, other])

    assert failed.error is not None
    assert failed.error.code == "unsupported"
    assert fine.error is None
