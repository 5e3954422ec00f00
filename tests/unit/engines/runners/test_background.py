from __future__ import annotations

import threading

import pytest

from duologue.core.errors import EngineError
from duologue.engines.payloads import SpeechMark, TextDelta, TokenUsage
from duologue.engines.runners.background import OutputFeed
from duologue.engines.runners.contract import Step
from tests.patience import PATIENCE_S


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def test_outputs_come_out_in_order_and_text_is_merged() -> None:
    feed = OutputFeed(Counter(), capacity=8)
    for output in (TextDelta("Hel"), TextDelta("lo"), SpeechMark(5, 1), TextDelta("!")):
        feed.put(output)
    assert feed.take() == Step([TextDelta("Hello"), SpeechMark(5, 1), TextDelta("!")])
    assert not feed.has_news()


def test_each_piece_of_news_wakes_the_worker() -> None:
    wake = Counter()
    feed = OutputFeed(wake, capacity=8)
    feed.put(TextDelta("a"))
    assert wake.count == 1
    feed.end()
    assert wake.count == 2


def test_the_end_comes_with_the_last_outputs() -> None:
    feed = OutputFeed(Counter(), capacity=8)
    feed.put(TextDelta("a"))
    feed.put(TokenUsage(1, 1))
    feed.end()
    assert feed.take(most=1) == Step([TextDelta("a")])
    assert feed.take(most=1) == Step([TokenUsage(1, 1)], done=True)


def test_an_error_comes_after_what_was_made_before_it() -> None:
    feed = OutputFeed(Counter(), capacity=8)
    error = EngineError("broken")
    feed.put(TextDelta("a"))
    feed.end(error)
    assert feed.take() == Step([TextDelta("a")], error=error)


def test_only_the_first_end_counts() -> None:
    feed = OutputFeed(Counter(), capacity=8)
    feed.end()
    feed.end(EngineError("too late"))
    assert feed.take() == Step([], done=True)


def test_a_full_feed_holds_its_thread_until_something_is_taken() -> None:
    feed = OutputFeed(Counter(), capacity=1)
    entered, passed = threading.Event(), threading.Event()

    def make() -> None:
        feed.put(SpeechMark(1, 1))
        entered.set()
        feed.put(SpeechMark(2, 2))
        passed.set()

    thread = threading.Thread(target=make)
    thread.start()
    assert entered.wait(PATIENCE_S)
    assert not passed.is_set()
    assert feed.take().outputs == [SpeechMark(1, 1)]
    assert passed.wait(PATIENCE_S)
    thread.join()
    assert feed.take().outputs == [SpeechMark(2, 2)]


@pytest.mark.parametrize("full", [True, False])
def test_a_stopped_feed_lets_its_thread_go_and_keeps_nothing(full: bool) -> None:
    feed = OutputFeed(Counter(), capacity=1)
    if full:
        feed.put(SpeechMark(1, 1))
    thread = threading.Thread(target=feed.put, args=(SpeechMark(2, 2),))
    if full:
        thread.start()
    feed.stop()
    if not full:
        thread.start()
    thread.join(5)
    assert not thread.is_alive()
    assert feed.stopped
    assert not feed.has_news()
