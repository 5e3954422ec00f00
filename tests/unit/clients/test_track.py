from __future__ import annotations

from duologue.clients.track import TAIL_FRAMES, TrackAudio, TrackDone, TrackLabels
from duologue.protocol.events import (
    AudioCleared,
    OutputBufferCleared,
    OutputBufferStarted,
    OutputBufferStopped,
)
from tests.fakes.server import FakeAnswer

FRAME = bytes(960)


def begun(*names: str) -> TrackLabels:
    labels = TrackLabels()
    for name in names:
        assert labels.on_event(FakeAnswer(name).item_added()) == []
    return labels


def frame(name: str) -> TrackAudio:
    return TrackAudio(response_id=f"resp_{name}", item_id=f"item_{name}", pcm=FRAME)


def done(name: str) -> TrackDone:
    return TrackDone(response_id=f"resp_{name}", item_id=f"item_{name}")


def test_silence_between_answers_is_nobodys() -> None:
    labels = begun("a")
    assert labels.on_frame(FRAME) == []
    assert labels.on_event(AudioCleared()) == []


def test_frames_belong_to_the_answer_that_sounds_and_a_tail_after_it() -> None:
    labels = begun("a")
    labels.on_event(OutputBufferStarted(response_id="resp_a"))
    assert labels.on_frame(FRAME) == [frame("a")]
    labels.on_event(OutputBufferStopped(response_id="resp_a"))
    for _ in range(TAIL_FRAMES - 1):
        assert labels.on_frame(FRAME) == [frame("a")]
    assert labels.on_frame(FRAME) == [frame("a"), done("a")]
    assert labels.on_frame(FRAME) == []


def test_an_answer_that_was_cleared_has_no_tail() -> None:
    labels = begun("a")
    labels.on_event(OutputBufferStarted(response_id="resp_a"))
    assert labels.on_event(OutputBufferCleared(response_id="resp_other")) == []
    assert labels.on_event(OutputBufferCleared(response_id="resp_a")) == [done("a")]
    assert labels.on_frame(FRAME) == []


def test_the_next_answer_ends_the_tail_of_the_last() -> None:
    labels = begun("a", "b")
    labels.on_event(OutputBufferStarted(response_id="resp_a"))
    labels.on_event(OutputBufferStopped(response_id="resp_a"))
    labels.on_frame(FRAME)
    assert labels.on_event(OutputBufferStarted(response_id="resp_b")) == [done("a")]
    assert labels.on_frame(FRAME) == [frame("b")]


def test_the_first_spoken_item_is_the_one_and_old_ones_are_forgotten() -> None:
    labels = begun("a")
    other = FakeAnswer("z")
    other.response_id = "resp_a"
    labels.on_event(other.item_added())
    labels.on_event(OutputBufferStarted(response_id="resp_a"))
    assert labels.on_frame(FRAME) == [frame("a")]
    for number in range(70):
        labels.on_event(FakeAnswer(str(number)).item_added())
    (unknown,) = labels.on_frame(FRAME)
    assert isinstance(unknown, TrackAudio)
    assert unknown.item_id == "resp_a"
