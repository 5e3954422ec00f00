from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.payloads import AudioChunk, Payload, SpeakText, SpeechMark, TextDelta
from duologue.engines.runners.tts.openai_url import RATE_HZ, SpeechUrlSettings, build
from tests.fakes.http_server import Asked, Reply, serving
from tests.fakes.jobs import Jobs
from tests.patience import PATIENCE_S


def jobs_on(url: str) -> Jobs:
    jobs = Jobs()
    settings = SpeechUrlSettings(base_url=url, model="voice-1", voice="eve")
    jobs.runner = build(settings, jobs.wake)
    return jobs


def pcm(outputs: list[Payload]) -> bytes:
    return b"".join(output.pcm for output in outputs if isinstance(output, AudioChunk))


def marks(outputs: list[Payload]) -> list[SpeechMark]:
    return [output for output in outputs if isinstance(output, SpeechMark)]


def test_clauses_are_spoken_one_after_the_other_with_exact_ends() -> None:
    def answer(asked: Asked) -> Reply:
        word = json.loads(asked.body)["input"]
        return Reply(pieces=[word.encode() * 4])

    with serving(answer) as server:
        outputs = jobs_on(server.url).outputs_of([SpeakText("ab", 2), SpeakText("cdef", 6)])
    assert pcm(outputs) == b"abababab" + b"cdefcdefcdefcdef"
    assert marks(outputs) == [SpeechMark(2, 4), SpeechMark(6, 12)]
    starts = [(o.start_sample, o.rate_hz) for o in outputs if isinstance(o, AudioChunk)]
    assert starts == [(0, RATE_HZ), (4, RATE_HZ)]
    assert [asked.path for asked in server.asked] == ["/v1/audio/speech"] * 2


def test_the_server_is_told_voice_speed_and_form() -> None:
    with serving(lambda _: Reply(pieces=[b"aa"])) as server:
        jobs = jobs_on(server.url)
        jobs.outputs_of([SpeakText("one", 3, "bob", 1.5), SpeakText("two", 7, "default")])
    first, second = (json.loads(asked.body) for asked in server.asked)
    assert first == {
        "model": "voice-1",
        "input": "one",
        "voice": "bob",
        "speed": 1.5,
        "response_format": "pcm",
        "stream_format": "audio",
    }
    assert second["voice"] == "eve"


def test_sound_is_handed_on_while_more_comes_and_samples_stay_whole() -> None:
    go_on = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"abc"
        assert go_on.wait(PATIENCE_S)
        yield b"def"

    with serving(lambda _: Reply(pieces=pieces())) as server:
        jobs = jobs_on(server.url)
        job = jobs.open(SpeakText("x", 1))
        first = jobs.until(job, AudioChunk)
        assert pcm(first) == b"ab"
        go_on.set()
        rest, error = jobs.finish(job)
    assert error is None
    assert pcm(rest) == b"cdef"
    assert marks(rest) == [SpeechMark(1, 3)]


def test_a_clause_that_says_nothing_asks_nobody() -> None:
    with serving(lambda _: Reply(pieces=[b"aa"])) as server:
        assert jobs_on(server.url).outputs_of([SpeakText("", 3)]) == [SpeechMark(3, 0)]
    assert server.asked == []


def test_clauses_may_come_later() -> None:
    with serving(lambda _: Reply(pieces=[b"aa"])) as server:
        jobs = jobs_on(server.url)
        job = jobs.open(ended=False)
        job.inputs.append(SpeakText("one", 3))
        jobs.until(job, SpeechMark)
        job.inputs.append(SpeakText("two", 6))
        assert marks(jobs.until(job, SpeechMark)) == [SpeechMark(6, 2)]
        job.input_ended = True
        assert jobs.finish(job) == ([], None)


def test_a_cancel_hangs_up_and_leaves_no_thread() -> None:
    enough = threading.Event()

    def pieces() -> Iterator[bytes]:
        while not enough.is_set():
            yield b"a" * 50_000

    with serving(lambda _: Reply(pieces=pieces())) as server:
        jobs = jobs_on(server.url)
        job = jobs.open(SpeakText("x", 1), SpeakText("y", 2))
        jobs.until(job, AudioChunk)
        assert jobs.runner is not None
        jobs.runner.close(job)
        assert server.hung_up.wait(PATIENCE_S)
        enough.set()
    for thread in threading.enumerate():
        if thread.name == "speech":
            thread.join(10)
            assert not thread.is_alive()


def test_a_job_that_is_closed_before_any_clause_ends_its_thread() -> None:
    jobs = jobs_on("http://127.0.0.1:1/v1")
    assert jobs.runner is not None
    job = jobs.open(ended=False)
    jobs.runner.close(job)
    for thread in threading.enumerate():
        if thread.name == "speech":
            thread.join(10)
            assert not thread.is_alive()


def test_a_refusal_fails_the_job() -> None:
    with serving(lambda _: Reply(429, [b"slow down"])) as server:
        _, error = jobs_on(server.url).run(SpeakText("x", 1))
    assert error is not None
    assert error.code == "upstream_busy"
    assert error.quote == "slow down"


def test_something_else_than_a_clause_is_refused() -> None:
    _, error = jobs_on("http://127.0.0.1:1/v1").run(TextDelta("x"))
    assert error is not None
    assert "TextDelta" in error.message


def test_a_url_that_is_none_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="base_url"):
        jobs_on("localhost")
