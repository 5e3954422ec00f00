from __future__ import annotations

import email
import io
import threading
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from duologue.core.errors import ConfigError, StageTimeout
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
from duologue.engines.runners.asr.openai_url import TranscribeUrlSettings, build
from duologue.engines.runners.contract import Job, Step
from tests.patience import PATIENCE_S

RATE = 16_000


class Upload:
    """What the server was sent."""

    def __init__(self, path: str, headers: email.message.Message, body: bytes) -> None:
        self.path = path
        self.authorization = headers.get("Authorization")
        head = f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode()
        self.fields: dict[str, bytes] = {}
        for part in email.message_from_bytes(head + body).get_payload():
            assert isinstance(part, email.message.Message)
            name = str(part.get_param("name", header="content-disposition"))
            self.fields[name] = bytes(part.get_payload(decode=True))  # type: ignore[arg-type]

    @property
    def seconds(self) -> float:
        with wave.open(io.BytesIO(self.fields["file"])) as reader:
            return reader.getnframes() / reader.getframerate()


class Server:
    """Answers uploads with how long they are; may be told to wait, or to answer otherwise."""

    def __init__(self) -> None:
        self.uploads: list[Upload] = []
        self.arrived = threading.Semaphore(0)
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.status = 200
        self.answer: Callable[[Upload], bytes] = lambda upload: (
            b'{"text": "%.2f seconds"}' % upload.seconds
        )
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                upload = Upload(self.path, self.headers, body)
                outer.uploads.append(upload)
                outer.arrived.release()
                outer.may_answer.wait(PATIENCE_S)
                content = outer.answer(upload)
                with suppress(OSError):
                    self.send_response(outer.status)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.may_answer.set()
        server.http.shutdown()
        thread.join()
        server.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


class Caller:
    """A runner with one job, stepped whenever it is ready."""

    def __init__(self, server: Server, **settings: object) -> None:
        self.news = threading.Semaphore(0)
        values = {"base_url": server.url, "model": "tiny", **settings}
        self.runner = build(TranscribeUrlSettings(**values), self.news.release)  # type: ignore[arg-type]
        self.runner.warm_up()
        self.job = Job("a")
        self.runner.open(self.job)

    def send(self, *inputs: Payload) -> Step:
        self.job.inputs.extend(inputs)
        assert self.runner.ready(self.job)
        (step,) = self.runner.step([self.job])
        return step

    def next_step(self) -> Step:
        """Wait for the server's answer."""
        assert self.news.acquire(timeout=PATIENCE_S)
        assert self.runner.ready(self.job)
        (step,) = self.runner.step([self.job])
        return step


def speech(start_s: float, end_s: float) -> AudioChunk:
    return AudioChunk(bytes(2 * int((end_s - start_s) * RATE)), RATE, int(start_s * RATE))


def final(end_s: float) -> DecodeSpeech:
    return DecodeSpeech("final", int(end_s * RATE))


def partial(end_s: float) -> DecodeSpeech:
    return DecodeSpeech("partial", int(end_s * RATE))


def test_audio_up_to_the_end_is_uploaded_and_its_text_comes_back(
    server: Server, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("secret\n")
    caller = Caller(server, api_key_file=str(key), language="en")
    assert caller.send(speech(0, 1), speech(1, 2), final(1.5)).outputs == []
    assert not caller.runner.ready(caller.job)
    assert caller.next_step().outputs == [Transcript("1.50 seconds", "final", 24_000)]
    (upload,) = server.uploads
    assert upload.path == "/v1/audio/transcriptions"
    assert upload.authorization == "Bearer secret"
    assert upload.fields.keys() == {"model", "response_format", "language", "file"}
    assert upload.fields["model"] == b"tiny"


def test_options_are_handed_on_and_words_come_back_on_the_chunks_clock(server: Server) -> None:
    server.answer = lambda _: (
        b'{"text": "Hello.", "words": [{"word": "Hello.", "start": 0.25, "end": 0.5}]}'
    )
    caller = Caller(server, language="en")
    options = ListenOptions(words=True, language="de", prompt="Names.", temperature=0.5)

    caller.send(speech(2, 4), DecodeSpeech("final", 4 * RATE, options))

    word = HeardWord(" Hello.", int(2.25 * RATE), int(2.5 * RATE), 1.0)
    assert caller.next_step().outputs == [
        Transcript("Hello.", "final", 4 * RATE, HeardDetails((word,)))
    ]
    fields = server.uploads[0].fields
    assert fields["language"] == b"de"
    assert fields["prompt"] == b"Names."
    assert fields["temperature"] == b"0.5"
    assert fields["response_format"] == b"verbose_json"
    assert fields["timestamp_granularities[]"] == b"word"


def test_translations_go_to_their_own_route(server: Server) -> None:
    caller = Caller(server, language="de")

    caller.send(speech(0, 1), DecodeSpeech("final", RATE, ListenOptions(translate=True)))

    assert caller.next_step().outputs == [Transcript("1.00 seconds", "final", RATE, HeardDetails())]
    (upload,) = server.uploads
    assert upload.path == "/v1/audio/translations"
    assert "language" not in upload.fields


def test_a_stream_is_asked_again_and_ends_when_all_is_answered(server: Server) -> None:
    caller = Caller(server)
    caller.send(speech(0, 1), final(1))
    assert not caller.next_step().done
    caller.send(speech(1, 2), final(2))
    caller.job.input_ended = True
    assert not caller.runner.ready(caller.job)
    step = caller.next_step()
    assert [each.text for each in step.outputs if isinstance(each, Transcript)] == ["2.00 seconds"]
    assert step.done


def test_a_stream_that_asks_nothing_ends_at_once(server: Server) -> None:
    caller = Caller(server)
    caller.job.input_ended = True
    assert caller.send(speech(0, 1)).done
    assert server.uploads == []


def test_partials_are_not_uploaded_unless_wanted(server: Server) -> None:
    caller = Caller(server)
    assert caller.send(speech(0, 1), partial(1)).outputs == []
    assert not caller.runner.ready(caller.job)
    wanting = Caller(server, partials=True)
    wanting.send(speech(0, 1), partial(1))
    assert wanting.next_step().outputs == [Transcript("1.00 seconds", "partial", 16_000)]
    assert len(server.uploads) == 1


def test_a_newer_request_waits_for_the_one_under_way_and_replaces_what_waits(
    server: Server,
) -> None:
    caller = Caller(server)
    server.may_answer.clear()
    caller.send(speech(0, 1), final(1))
    caller.send(speech(1, 2), final(2))
    caller.send(speech(2, 3), final(3))
    server.may_answer.set()
    texts = [caller.next_step().outputs, caller.next_step().outputs]
    assert texts == [
        [Transcript("1.00 seconds", "final", 16_000)],
        [Transcript("3.00 seconds", "final", 48_000)],
    ]


def test_a_final_does_not_wait_for_a_partial(server: Server) -> None:
    caller = Caller(server, partials=True)
    server.may_answer.clear()
    caller.send(speech(0, 1), partial(1))
    assert server.arrived.acquire(timeout=PATIENCE_S)
    caller.send(speech(1, 2), final(2))
    # The partial's thread has news while the final is still with the server: it was hung up on.
    assert caller.news.acquire(timeout=PATIENCE_S)
    assert not caller.runner.ready(caller.job)
    server.may_answer.set()
    assert caller.next_step().outputs == [Transcript("2.00 seconds", "final", 32_000)]


def test_closing_hangs_up(server: Server) -> None:
    caller = Caller(server)
    server.may_answer.clear()
    caller.send(speech(0, 1), final(1))
    assert server.arrived.acquire(timeout=PATIENCE_S)
    caller.runner.close(caller.job)
    assert caller.news.acquire(timeout=PATIENCE_S)
    assert not server.may_answer.is_set()


def test_what_is_too_short_for_a_word_is_not_uploaded(server: Server) -> None:
    caller = Caller(server)
    assert caller.send(speech(0, 1), final(0.05)).outputs == [Transcript("", "final", 800)]
    assert server.uploads == []


def test_a_refusal_fails_the_job_with_the_servers_words(server: Server) -> None:
    server.status = 401
    server.answer = lambda _: b'{"error": "wrong key"}'
    caller = Caller(server)
    caller.send(speech(0, 1), final(1))
    error = caller.next_step().error
    assert error is not None
    assert "401" in error.message
    assert "wrong key" in error.quote
    assert error.code == "upstream_denied"


def test_a_partial_that_fails_is_left_out(server: Server) -> None:
    server.status = 500
    caller = Caller(server, partials=True)
    caller.send(speech(0, 1), partial(1))
    step = caller.next_step()
    assert step.outputs == []
    assert step.error is None


@pytest.mark.parametrize("answer", [b"{}", b" " * (1024 * 1024 + 1)])
def test_an_answer_that_is_none_fails_the_job(server: Server, answer: bytes) -> None:
    server.answer = lambda _: answer
    caller = Caller(server)
    caller.send(speech(0, 1), final(1))
    assert caller.next_step().error is not None


def test_a_silent_server_is_given_up(server: Server) -> None:
    server.may_answer.clear()
    caller = Caller(server, silence_timeout_s=0.1)
    caller.send(speech(0, 1), final(1))
    assert isinstance(caller.next_step().error, StageTimeout)


def test_a_server_that_is_not_there_is_named() -> None:
    with serving() as gone:
        pass
    caller = Caller(gone)
    caller.send(speech(0, 1), final(1))
    error = caller.next_step().error
    assert error is not None
    assert error.code == "upstream_unreachable"
    assert "127.0.0.1" in error.message


def test_an_utterance_has_a_longest_length(server: Server) -> None:
    error = Caller(server, max_audio_s=1.0).send(speech(0, 1), speech(1, 1.1)).error
    assert error is not None
    assert "longer than 1 s" in error.message


def test_what_is_no_audio_fails_the_job(server: Server) -> None:
    error = Caller(server).send(TextDelta("hm")).error
    assert error is not None
    assert "TextDelta" in error.message


def test_a_url_that_is_none_refuses_to_start() -> None:
    settings = TranscribeUrlSettings(base_url="localhost:8000", model="x")
    with pytest.raises(ConfigError, match="localhost:8000"):
        build(settings, lambda: None)
