from __future__ import annotations

from collections import deque

import pytest

from duologue.codecs.pcm import float_to_pcm
from duologue.core.errors import EngineError
from duologue.engines.payloads import AudioChunk, CodeFrames, Payload, SpeakText, SpeechMark
from duologue.engines.runners.contract import Job, Runner
from duologue.engines.runners.speech.sounding import ChunkSizes
from duologue.engines.runners.speech.stages import CodecRunner, FusedRunner, TalkerRunner
from tests.fakes.speech_model import RATE_HZ, FakeCodec, FakeTalker, codes_of, whole

SIZES = ChunkSizes(1, 3)
CLAUSES = (SpeakText("hello there", 11), SpeakText("and you", 19))
SPEECH = [whole(codes_of(clause.text)) for clause in CLAUSES]
PCM = b"".join(map(float_to_pcm, SPEECH))
MARKS = [SpeechMark(11, len(SPEECH[0])), SpeechMark(19, len(SPEECH[0]) + len(SPEECH[1]))]


def opened(runner: Runner, *inputs: Payload, job_id: str = "j") -> Job:
    job = Job(job_id, inputs=deque(inputs), input_ended=True)
    runner.open(job)
    return job


def run(runner: Runner, job: Job) -> list[Payload]:
    outputs: list[Payload] = []
    while runner.ready(job):
        (step,) = runner.step([job])
        assert step.error is None
        outputs += step.outputs
    runner.close(job)
    return outputs


def pcm_of(outputs: list[Payload]) -> bytes:
    return b"".join(each.pcm for each in outputs if isinstance(each, AudioChunk))


def marks_of(outputs: list[Payload]) -> list[SpeechMark]:
    return [each for each in outputs if isinstance(each, SpeechMark)]


class TestFused:
    def test_it_says_all_clauses_as_if_each_were_sounded_at_once(self) -> None:
        talker, codec = FakeTalker(), FakeCodec()
        runner = FusedRunner(talker, codec, 100, SIZES)
        runner.warm_up()
        outputs = run(runner, opened(runner, *CLAUSES))
        assert pcm_of(outputs) == PCM
        assert marks_of(outputs) == MARKS
        assert talker.open == codec.open == []

    def test_the_first_step_is_heard(self) -> None:
        runner = FusedRunner(FakeTalker(), FakeCodec(), 100, SIZES)
        job = opened(runner, *CLAUSES)
        (step,) = runner.step([job])
        (chunk,) = step.outputs
        assert isinstance(chunk, AudioChunk)
        assert chunk.rate_hz == RATE_HZ

    def test_a_job_that_fails_leaves_the_others_alone(self) -> None:
        runner = FusedRunner(FakeTalker(), FakeCodec(), 100, SIZES)
        jobs = [opened(runner, SpeakText("bad", 3)), opened(runner, *CLAUSES, job_id="k")]
        failed, fine = runner.step(jobs)
        assert failed.error is not None
        assert fine.outputs

    def test_a_cancel_frees_both(self) -> None:
        talker, codec = FakeTalker(slots=1), FakeCodec(slots=1)
        runner = FusedRunner(talker, codec, 100, SIZES)
        job = opened(runner, *CLAUSES)
        runner.step([job])
        runner.close(job)
        assert talker.open == codec.open == []
        assert pcm_of(run(runner, opened(runner, *CLAUSES))) == PCM


class TestTwoStages:
    def both(self, talker: TalkerRunner, codec: CodecRunner) -> tuple[list[Payload], list[Payload]]:
        """What is heard past the codec, and what of it."""
        made = run(talker, opened(talker, *CLAUSES))
        codes = [each for each in made if isinstance(each, CodeFrames)]
        ahead = [each for each in made if isinstance(each, AudioChunk)]
        return ahead, run(codec, opened(codec, *codes))

    def test_they_say_what_one_would(self) -> None:
        talker = TalkerRunner(FakeTalker(), 100)
        talker.warm_up()
        codec = CodecRunner(FakeCodec(), SIZES)
        codec.warm_up()
        ahead, outputs = self.both(talker, codec)
        assert ahead == []
        assert pcm_of(outputs) == PCM
        assert marks_of(outputs) == MARKS

    def test_the_first_frame_may_be_sounded_by_the_talker_and_is_not_repeated(self) -> None:
        model, quick, codec = FakeTalker(), FakeCodec(), FakeCodec()
        talker = TalkerRunner(model, 100, ahead=quick)
        (first,), outputs = self.both(talker, CodecRunner(codec, SIZES))
        assert isinstance(first, AudioChunk)
        assert first.start_sample == 0
        assert first.pcm + pcm_of(outputs) == PCM
        assert marks_of(outputs) == MARKS
        assert model.open == quick.open == codec.open == []

    def test_what_the_talker_sounds_comes_with_the_step_that_drew_it(self) -> None:
        talker = TalkerRunner(FakeTalker(), 100, ahead=FakeCodec())
        (step,) = talker.step([opened(talker, *CLAUSES)])
        assert [type(each) for each in step.outputs] == [AudioChunk, CodeFrames]

    def test_a_talker_gives_the_error_of_what_it_cannot_say(self) -> None:
        talker = TalkerRunner(FakeTalker(), 100)
        (step,) = talker.step([opened(talker, SpeakText("bad", 3))])
        assert step.error is not None

    def test_a_codec_takes_no_more_than_it_sounds(self) -> None:
        codec = CodecRunner(FakeCodec(), ChunkSizes(1, 2))
        talker = TalkerRunner(FakeTalker(), 100)
        job = opened(codec, *run(talker, opened(talker, SpeakText("hello", 5))))
        codec.step([job])
        assert len(job.inputs) == 5
        codec.step([job])
        assert len(job.inputs) == 3

    def test_a_codec_that_waits_for_a_chunk_says_nothing(self) -> None:
        codec = CodecRunner(FakeCodec(), ChunkSizes(3, 3))
        job = opened(codec, CodeFrames(bytes(4), 2))
        (step,) = codec.step([job])
        assert (step.outputs, step.error) == ((), None)
        assert not codec.ready(job)

    def test_both_are_warm_before_their_first_job(self) -> None:
        codec, ahead = FakeCodec(), FakeCodec()
        CodecRunner(codec, SIZES).warm_up()
        TalkerRunner(FakeTalker(), 100, ahead=ahead).warm_up()
        assert (codec.chunks, ahead.chunks) == ([[1], [3]], [[1], [1]])
        assert codec.open == ahead.open == []

    def test_a_codec_refuses_what_is_no_code(self) -> None:
        codec = CodecRunner(FakeCodec(), SIZES)
        (step,) = codec.step([opened(codec, SpeakText("a", 1))])
        assert step.error is not None

    def test_a_codec_has_so_many_slots(self) -> None:
        codec = CodecRunner(FakeCodec(slots=1), SIZES)
        job = opened(codec)
        with pytest.raises(EngineError, match="1 slots"):
            opened(codec, job_id="k")
        codec.close(job)
        opened(codec, job_id="k")
