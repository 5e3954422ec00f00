from __future__ import annotations

import pytest

from duologue.core.errors import LimitExceeded
from duologue.protocol.duplex.commands import ShowFrame
from duologue.protocol.duplex.events import FrameAcknowledged, FramesConsumed
from duologue.protocol.items import InputAudio, InputImage, MessageItem
from duologue.sessions.history.history import History
from duologue.sessions.seeing.sight import Sight
from duologue.sessions.settings import FrameSettings
from tests.fakes.pictures import picture, shade_of

EVERY = FrameSettings(per_s=1, turns=2, per_turn=2)


class Scene:
    """A conversation of turns, and a camera."""

    def __init__(self, settings: FrameSettings = EVERY, max_bytes: int = 1 << 20) -> None:
        self.history = History(20, max_bytes)
        self.sight = Sight(settings, self.history)
        self.now = 0.0

    def show(self, *shades: int) -> list[FrameAcknowledged | None]:
        told = []
        for shade in shades:
            self.now += 1
            frame = ShowFrame(data=picture(shade), frame_id=str(shade))
            told.append(self.sight.show(frame, self.now))
        return told

    def turn(self, item_id: str) -> list[FramesConsumed]:
        self.history.add(MessageItem(id=item_id, role="user", content=(InputAudio(),)))
        told = list(self.sight.give(item_id))
        assert self.history.held_bytes == self.history.count_held()
        return told

    def seen(self, item_id: str) -> list[int]:
        item = self.history.get(item_id).item
        assert isinstance(item, MessageItem)
        urls = [part.image_url for part in item.content if isinstance(part, InputImage)]
        return [round(shade_of(url), -1) for url in urls]


def test_a_turn_has_the_frames_that_were_shown_before_it() -> None:
    scene = Scene()
    assert scene.turn("before") == []
    assert scene.show(50, 100, 150) == [
        FrameAcknowledged(frame_id=str(shade), buffered_frames=count)
        for count, shade in enumerate((50, 100, 150), 1)
    ]
    assert scene.turn("a") == [FramesConsumed(item_id="a", frames=2, frame_ids=("50", "150"))]
    assert scene.seen("a") == [50, 150]
    assert scene.turn("b") == [], "each frame is given once"
    assert scene.history.view()[1].images != ()


def test_frames_leave_the_conversation_after_some_turns_and_words_stay() -> None:
    scene = Scene()
    for number, item_id in enumerate("abc"):
        scene.show(50 + 50 * number)
        scene.turn(item_id)
        scene.history.set_user_transcript(item_id, item_id)
    assert [scene.seen(item_id) for item_id in "abc"] == [[], [100], [150]]
    assert [view.text for view in scene.history.view()] == ["a", "b", "c"]


def test_an_item_that_was_deleted_is_not_missed() -> None:
    scene = Scene()
    for item_id in "abc":
        scene.show(100)
        scene.turn(item_id)
        scene.history.delete(item_id)
    assert scene.history.held_bytes == 0


def test_where_there_is_little_room_the_newest_go_in() -> None:
    size = len(picture(50)) * 4 // 3 + 60
    scene = Scene(max_bytes=size)
    scene.show(50, 150)
    assert scene.turn("a") == [FramesConsumed(item_id="a", frames=1, frame_ids=("150",))]
    assert scene.seen("a") == [150]
    scene.show(100)
    assert scene.turn("b") == [], "the conversation is full"
    assert len(scene.sight.window) == 0


def test_a_frame_that_is_too_large_is_refused_and_nothing_changes() -> None:
    scene = Scene(FrameSettings(max_bytes=10))
    with pytest.raises(LimitExceeded) as refused:
        scene.show(100)
    assert refused.value.param == "data"
    assert len(scene.sight.window) == 0


def test_a_sender_that_names_nothing_is_told_nothing_and_learns_what_gave_way() -> None:
    scene = Scene(FrameSettings(per_s=0.1))
    assert scene.sight.show(ShowFrame(data=picture(1)), 0.0) is None
    first, second = scene.show(50, 100)
    assert first is not None
    assert second is not None
    assert (first.dropped_frame_ids, second.dropped_frame_ids) == ((), ("50",))
