from __future__ import annotations

import itertools
from array import array

import pytest

from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    Payload,
    SpeakText,
    SpeechMark,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    Tools,
    ToolSpec,
    VoiceActivity,
)
from duologue.engines.runners.contract import Job, Runner, Step
from duologue.engines.runners.scripted import (
    TONE_RATE_HZ,
    Fault,
    ScriptCall,
    ScriptRunner,
    ScriptSettings,
    ToneRunner,
    ToneSettings,
    tone_hz,
)


def play(runner: Runner, *inputs: Payload, input_ended: bool = True) -> list[Step]:
    """Step a job until it is done, or waits for input."""
    job = Job(id="a", input_ended=input_ended)
    runner.open(job)
    job.inputs.extend(inputs)
    steps: list[Step] = []
    while runner.ready(job):
        (step,) = runner.step([job])
        steps.append(step)
        if step.done or step.error is not None:
            break
    runner.close(job)
    return steps


def outputs(steps: list[Step]) -> list[Payload]:
    return [payload for step in steps for payload in step.outputs]


def texts(steps: list[Step]) -> list[str]:
    return [payload.text for payload in outputs(steps) if isinstance(payload, TextDelta)]


def script(**settings: object) -> ScriptRunner:
    return ScriptRunner(ScriptSettings(**settings))


def tone(**settings: object) -> ToneRunner:
    return ToneRunner(ToneSettings(**settings))


class TestScript:
    def test_it_says_the_text_again_word_by_word(self) -> None:
        steps = play(script(), TextDelta("one two  three"))
        assert texts(steps) == ["one", " two", " three"]
        assert [step.done for step in steps] == [False, False, True]

    def test_it_says_its_reply_to_a_conversation_and_counts(self) -> None:
        request = ChatRequest((ChatMessage("user", "how are you"),), max_tokens=9)
        steps = play(script(reply="very well"), request)
        assert "".join(texts(steps)) == "very well"
        assert outputs(steps)[-1] == TokenUsage(input_tokens=3, output_tokens=2)

    def test_it_calls_the_functions_that_it_is_offered(self) -> None:
        runner = script(
            calls=(ScriptCall(name="look"), ScriptCall(name="go", arguments='{"to":1}')),
            preamble="One moment.",
        )
        offer = Tools((ToolSpec("go"),))
        question = ChatMessage("user", "how are you")
        request = ChatRequest((question,), max_tokens=9, tools=offer)
        told = outputs(play(runner, request))
        assert told[:2] == [TextDelta("One"), TextDelta(" moment.")]
        assert told[2:4] == [
            ToolCallDelta(0, "call_0", "go", '{"to'),
            ToolCallDelta(0, arguments='":1}'),
        ]
        assert told[4] == TokenUsage(3, 2)
        output = ChatMessage("tool", "well", call_id="call_0")
        after = ChatRequest((question, output), max_tokens=9, tools=offer)
        assert texts(play(runner, after)) == ["well"]
        assert texts(play(runner, ChatRequest((question,), 9))) == ["how", " are", " you"]

    def test_chunks_follow_the_schedule_and_its_last_number_repeats(self) -> None:
        steps = play(script(words_per_chunk=(1, 2)), TextDelta("a b c d e"))
        assert texts(steps) == ["a", " b c", " d e"]

    def test_a_delay_is_steps_without_output(self) -> None:
        steps = play(script(delay_steps=2), TextDelta("a b"))
        assert [len(step.outputs) for step in steps] == [0, 0, 1, 1]

    def test_an_open_stream_is_not_done(self) -> None:
        steps = play(script(), TextDelta("a"), TextDelta("b"), input_ended=False)
        assert texts(steps) == ["a", "b"]
        assert not any(step.done for step in steps)

    def test_input_without_words_ends_with_nothing_said(self) -> None:
        steps = play(script(), TextDelta(" "))
        assert outputs(steps) == []
        assert steps[-1].done

    def test_it_reads_only_text(self) -> None:
        (step,) = play(script(), VoiceActivity(1.0, 10))
        assert step.error is not None
        assert "VoiceActivity" in step.error.message

    def test_the_same_input_gives_the_same_steps(self) -> None:
        inputs = [TextDelta("a b c"), TextDelta("d")]
        assert play(script(), *inputs) == play(script(), *inputs)


class TestTone:
    def test_the_length_follows_the_text(self) -> None:
        steps = play(tone(ms_per_character=50), SpeakText("four", 4))
        chunks = [each for each in outputs(steps) if isinstance(each, AudioChunk)]
        assert [len(chunk.pcm) for chunk in chunks] == [4800, 4800]
        assert [chunk.start_sample for chunk in chunks] == [0, 2400]

    def test_a_mark_ends_each_clause_where_its_audio_ends(self) -> None:
        steps = play(tone(), SpeakText("one", 3), SpeakText(" two", 7))
        marks = [each for each in outputs(steps) if isinstance(each, SpeechMark)]
        assert marks == [SpeechMark(3, 3 * 60 * 24), SpeechMark(7, 7 * 60 * 24)]

    def test_plain_text_is_marked_with_its_own_offsets(self) -> None:
        steps = play(tone(), TextDelta("one"), TextDelta(" two"))
        marks = [each.text_end for each in outputs(steps) if isinstance(each, SpeechMark)]
        assert marks == [3, 7]

    def test_chunks_follow_the_schedule(self) -> None:
        steps = play(tone(ms_per_character=100, chunk_ms=(50, 200)), SpeakText("12345", 5))
        sizes = [len(each.pcm) // 48 for each in outputs(steps) if isinstance(each, AudioChunk)]
        assert sizes == [50, 200, 200, 50]

    def test_the_pitch_can_be_heard_and_tells_texts_apart(self) -> None:
        assert tone_hz("one") != tone_hz("two")
        steps = play(tone(ms_per_character=200), SpeakText("hello", 5))
        pcm = b"".join(each.pcm for each in outputs(steps) if isinstance(each, AudioChunk))
        samples = array("h", pcm)
        rising = sum(a < 0 <= b for a, b in itertools.pairwise(samples))
        assert rising == pytest.approx(tone_hz("hello") * len(samples) / TONE_RATE_HZ, abs=2)
        assert max(samples) == pytest.approx(8000, abs=100)

    def test_there_is_no_click_between_the_chunks(self) -> None:
        steps = play(tone(ms_per_character=70), SpeakText("a longer text", 13))
        pcm = b"".join(each.pcm for each in outputs(steps) if isinstance(each, AudioChunk))
        samples = array("h", pcm)
        steepest = 8000 * 2 * 3.15 * tone_hz("a longer text") / TONE_RATE_HZ
        assert max(abs(a - b) for a, b in itertools.pairwise(samples)) <= steepest

    def test_an_empty_clause_is_only_marked(self) -> None:
        assert outputs(play(tone(), SpeakText("", 0))) == [SpeechMark(0, 0)]


class TestFaults:
    def test_raise_fails_the_job_at_its_chunk(self) -> None:
        steps = play(script(fault=Fault("raise", at_chunk=1)), TextDelta("a b c"))
        assert texts(steps) == ["a"]
        assert steps[-1].error is not None

    def test_crash_is_a_foreign_exception(self) -> None:
        with pytest.raises(RuntimeError, match="scripted crash"):
            play(script(fault=Fault("crash")), TextDelta("a"))

    def test_late_holds_one_chunk_back_by_its_steps(self) -> None:
        steps = play(script(fault=Fault("late", at_chunk=1, steps=3)), TextDelta("a b c"))
        assert [len(step.outputs) for step in steps] == [1, 0, 0, 0, 1, 1]
        assert "".join(texts(steps)) == "a b c"

    def test_twice_repeats_one_chunk(self) -> None:
        steps = play(script(fault=Fault("twice", at_chunk=1)), TextDelta("a b c"))
        assert texts(steps) == ["a", " b", " b", " c"]

    def test_short_ends_well_and_too_early(self) -> None:
        steps = play(script(fault=Fault("short", at_chunk=2)), TextDelta("a b c"))
        assert texts(steps) == ["a", " b"]
        assert steps[-1].done
        assert steps[-1].error is None

    def test_only_jobs_with_the_named_text_are_hit(self) -> None:
        runner = tone(fault=Fault("raise", when_text="bad"))
        assert play(runner, SpeakText("good", 4))[-1].error is None
        assert play(runner, SpeakText("a bad one", 9))[-1].error is not None
