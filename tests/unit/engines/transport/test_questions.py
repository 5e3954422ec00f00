from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
import zmq

from duologue.core.clock import SystemClock
from duologue.core.errors import AuthError, EngineError, StageTimeout
from duologue.engines.transport.questions import (
    HIGH_WATER_MARK,
    MAX_LINKS,
    MAX_QUESTION_BYTES,
    Answerer,
    Asker,
    Keys,
)
from tests.patience import PATIENCE_S

SECRET = b"a secret of a cluster"
OTHER_SECRET = b"a secret of another one"


def soon(seconds: float = 0.2) -> float:
    return SystemClock().now() + seconds


class Echo:
    """Answers with what it was asked, but for what begins with ``?``; nothing while it sleeps."""

    def __init__(self) -> None:
        self.awake = threading.Event()
        self.awake.set()
        self.asked: list[bytes] = []
        self.answerer = Answerer("127.0.0.1", 0, SECRET, self.answer)
        self.answerer.start()
        self.place = self.answerer.place

    def answer(self, asked: bytes) -> list[bytes] | None:
        self.awake.wait()
        self.asked.append(asked)
        return None if asked[:1] == b"?" else [asked, b"and more"]


@pytest.fixture
def echo() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    echo.awake.set()
    echo.answerer.close()


@pytest.fixture
def asker() -> Iterator[Asker]:
    asker = Asker(SECRET, SystemClock())
    yield asker
    asker.close()


def answer(asker: Asker, echo: Echo, words: bytes, seconds: float = 15) -> list[bytes]:
    return [each.bytes for each in asker.ask(echo.place, words, soon(seconds))]


def test_a_question_is_answered(asker: Asker, echo: Echo) -> None:
    assert answer(asker, echo, b"one") == [b"one", b"and more"]
    assert answer(asker, echo, b"") == [b"", b"and more"]


def test_questions_that_were_given_up_leave_nothing_to_the_next(asker: Asker, echo: Echo) -> None:
    echo.awake.clear()
    for number in range(3 * HIGH_WATER_MARK):
        with pytest.raises(StageTimeout, match="did not answer in time"):
            answer(asker, echo, b"given up %d" % number, seconds=0.01)
    echo.awake.set()
    assert answer(asker, echo, b"the next") == [b"the next", b"and more"]


def test_whoever_is_not_asked_for_long_is_let_go(asker: Asker, echo: Echo) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        deaf.settimeout(PATIENCE_S)
        with pytest.raises(StageTimeout):
            asker.ask(f"tcp://127.0.0.1:{deaf.getsockname()[1]}", b"?", soon(-1))
        line, _ = deaf.accept()
    assert answer(asker, echo, b"one")
    for port in range(1, MAX_LINKS):
        with pytest.raises(StageTimeout):
            asker.ask(f"tcp://127.0.0.1:{port}", b"?", soon(-1))
    line.settimeout(PATIENCE_S)
    with line:
        while line.recv(1024):
            pass
    assert answer(asker, echo, b"two") == [b"two", b"and more"]


def test_what_is_no_question_is_not_answered(asker: Asker, echo: Echo) -> None:
    with pytest.raises(StageTimeout):
        answer(asker, echo, b"?", seconds=0.1)
    assert answer(asker, echo, b"one") == [b"one", b"and more"]


def test_what_needs_no_answer_is_heard(asker: Asker, echo: Echo) -> None:
    assert answer(asker, echo, b"hello")
    assert asker.tell(echo.place, b"?by the way")
    assert answer(asker, echo, b"still there")
    assert echo.asked == [b"hello", b"?by the way", b"still there"]


def test_what_is_too_long_to_be_a_question_is_not_read(asker: Asker, echo: Echo) -> None:
    with pytest.raises(StageTimeout):
        answer(asker, echo, b"x" * (MAX_QUESTION_BYTES + 1), seconds=0.1)
    assert echo.asked == []


def test_whoever_has_another_secret_gets_no_answer(echo: Echo) -> None:
    stranger = Asker(OTHER_SECRET, SystemClock())
    with pytest.raises(StageTimeout):
        answer(stranger, echo, b"?", seconds=0.2)
    stranger.close()
    assert echo.asked == []


def test_to_know_the_answerers_key_is_not_enough(echo: Echo) -> None:
    context = zmq.Context()
    link = context.socket(zmq.DEALER)
    public, private = zmq.curve_keypair()
    link.set(zmq.LINGER, 0)
    link.set(zmq.CURVE_SERVERKEY, Keys.of(SECRET, "store").public)
    link.set(zmq.CURVE_PUBLICKEY, public)
    link.set(zmq.CURVE_SECRETKEY, private)
    link.connect(echo.place)
    link.send_multipart([bytes(8), b"?"])
    assert not link.poll(200)
    link.close()
    context.term()
    assert echo.asked == []


def test_nobody_is_answered_in_the_clear(asker: Asker, echo: Echo) -> None:
    context = zmq.Context()
    plain = context.socket(zmq.DEALER)
    plain.set(zmq.LINGER, 0)
    plain.connect(echo.place)
    plain.send_multipart([bytes(8), b"anything"])
    assert not plain.poll(200)
    plain.close()
    context.term()
    assert answer(asker, echo, b"x")
    assert echo.asked == [b"x"]


def test_a_secret_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(AuthError, match="5 bytes; 16 at least"):
        Asker(b"short", SystemClock())


def test_keys_are_those_of_secret_and_role() -> None:
    assert Keys.of(SECRET, "store") == Keys.of(SECRET, "store")
    assert Keys.of(SECRET, "store") != Keys.of(SECRET, "reader")
    assert Keys.of(SECRET, "store") != Keys.of(OTHER_SECRET, "store")


def test_an_address_that_is_taken_is_an_error() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(EngineError, match="no transport at"),
    ):
        Answerer("127.0.0.1", taken.getsockname()[1], SECRET, lambda asked: None)


def test_an_answerer_closes_twice(echo: Echo) -> None:
    echo.answerer.close()
    echo.answerer.close()
