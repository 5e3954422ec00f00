"""What the session has to say: ordered, bounded, accounted for to the byte."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from duologue.protocol.events import (
    AudioCleared,
    Event,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    RateLimitsUpdated,
)
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.on_interruption import OnInterruption
from duologue.protocol.response_events import (
    AudioDelta,
    AudioTranscriptDelta,
    ContentPartAdded,
    TextPart,
)
from duologue.sessions.speaking.output_buffer import (
    EVENT_BYTES,
    OutputBuffer,
    OutputLimits,
    OutputOverflow,
    booked_bytes,
)

RATE_HZ = 1000
"""One sample is a millisecond."""

LIMITS = OutputLimits(audio_ms=1000, held_bytes=8000, events=8)


def make_buffer(limits: OutputLimits = LIMITS, responses: tuple[str, ...] = ("r",)) -> OutputBuffer:
    buffer = OutputBuffer(limits, RATE_HZ)
    for response_id in responses:
        buffer.open(response_id)
    return buffer


def pcm(samples: int) -> bytes:
    return b"\x01\x00" * samples


def text(delta: str, response_id: str = "r") -> AudioTranscriptDelta:
    return AudioTranscriptDelta(
        response_id=response_id, item_id="i", output_index=0, content_index=0, delta=delta
    )


def part(response_id: str = "r") -> ContentPartAdded:
    return ContentPartAdded(
        response_id=response_id, item_id="i", output_index=0, content_index=0, part=TextPart()
    )


def speech(buffer: OutputBuffer, max_samples: int = 200, min_samples: int = 0) -> int:
    """Samples of the next piece; 0 for none."""
    taken = buffer.take_speech(max_samples, min_samples)
    return 0 if taken is None else len(taken.pcm) // 2


def test_what_was_put_comes_out_in_order() -> None:
    buffer = make_buffer()
    events = [ItemDeleted(item_id=str(number)) for number in range(3)]
    for event in events:
        buffer.put(event)
    assert [buffer.take_event() for _ in range(4)] == [*events, None]


def test_a_responses_events_wait_for_the_speech_before_them() -> None:
    buffer = make_buffer()
    buffer.put_response("r", part())
    buffer.put_speech("r", pcm(100))
    buffer.put_response("r", text("later"))
    assert buffer.take_event() == part()
    assert buffer.take_event() is None
    assert speech(buffer) == 100
    assert buffer.take_event() == text("later")


def test_other_events_overtake_speech_and_what_is_behind_it() -> None:
    buffer = make_buffer()
    buffer.put_speech("r", pcm(100))
    buffer.put(AudioCleared())
    assert buffer.has_event()
    assert buffer.take_event() == AudioCleared()
    assert not buffer.has_event()
    assert buffer.has_speech()


def test_one_responses_speech_does_not_hold_up_another_response() -> None:
    buffer = make_buffer(responses=("r", "s"))
    buffer.put_speech("r", pcm(100))
    buffer.put_response("s", text("free", "s"))
    assert buffer.has_event()
    assert buffer.take_event() == text("free", "s")


def test_speech_is_merged_and_cut_into_the_pieces_that_are_asked_for() -> None:
    buffer = make_buffer()
    for size in (30, 30, 300):
        buffer.put_speech("r", pcm(size))
    assert [speech(buffer) for _ in range(3)] == [200, 160, 0]
    assert not buffer.has_speech()


def test_a_short_piece_is_left_for_more_to_be_merged_onto_it() -> None:
    buffer = make_buffer()
    buffer.put_speech("r", pcm(50))
    assert speech(buffer, min_samples=100) == 0
    buffer.put_speech("r", pcm(50))
    assert speech(buffer, min_samples=100) == 100


def test_a_short_piece_goes_where_nothing_can_be_merged_onto_it() -> None:
    buffer = make_buffer(responses=("r", "s"))
    buffer.put_speech("r", pcm(50))
    buffer.put_response("r", text("next"))
    assert speech(buffer, min_samples=100) == 50
    buffer.put_speech("s", pcm(40))
    buffer.complete("s")
    assert speech(buffer, min_samples=100) == 40


def test_a_short_piece_does_not_hold_up_another_response() -> None:
    buffer = make_buffer(responses=("r", "s"))
    buffer.put_speech("r", pcm(50))
    buffer.put_speech("s", pcm(150))
    taken = buffer.take_speech(200, 100)
    assert taken is not None
    assert taken.response_id == "s"


def test_an_interruption_takes_back_speech_and_text_and_leaves_the_rest_in_order() -> None:
    buffer = make_buffer()
    buffer.put_response("r", part())
    buffer.put_response("r", text("unheard"))
    buffer.put_speech("r", pcm(100))
    buffer.put_response("r", ItemDeleted(item_id="x"))
    buffer.clear("r")
    assert not buffer.has_speech()
    assert buffer.speech_samples("r") == 0
    buffer.close("r")
    assert [buffer.take_event() for _ in range(3)] == [part(), ItemDeleted(item_id="x"), None]
    assert (buffer.held_bytes, buffer.held_events) == (0, 0)


def test_clearing_or_closing_a_response_that_is_over_does_nothing() -> None:
    buffer = make_buffer()
    buffer.clear("gone")
    buffer.close("gone")
    assert buffer.is_empty("gone")
    assert buffer.speech_samples("gone") == 0
    assert not buffer


def test_a_response_may_only_be_closed_without_speech() -> None:
    buffer = make_buffer()
    buffer.put_speech("r", pcm(100))
    with pytest.raises(AssertionError, match="cleared before it is closed"):
        buffer.close("r")


def test_too_much_speech_of_one_response_is_refused_and_nothing_changes() -> None:
    buffer = make_buffer()
    buffer.put_speech("r", pcm(1000))
    with pytest.raises(OutputOverflow, match="1001 ms of speech would wait, the limit is 1000 ms"):
        buffer.put_speech("r", pcm(1))
    assert buffer.speech_samples("r") == 1000
    assert buffer.held_bytes == 2000


def test_speech_of_all_responses_together_leaves_room_for_the_events() -> None:
    buffer = make_buffer(responses=("a", "b", "c"))
    for response_id, samples in (("a", 1000), ("b", 1000), ("c", 900)):
        buffer.put_speech(response_id, pcm(samples))
    with pytest.raises(OutputOverflow, match="6000 bytes would wait, the limit is 5952"):
        buffer.put_speech("c", pcm(100))
    for _ in range(LIMITS.events):
        buffer.put(AudioCleared())


def test_room_for_events_is_never_all_the_room_there_is() -> None:
    buffer = make_buffer(OutputLimits(audio_ms=1000, held_bytes=4000, events=10_000))
    buffer.put_speech("r", pcm(1000))


def test_too_many_events_are_refused() -> None:
    buffer = make_buffer()
    for _ in range(8):
        buffer.put(AudioCleared())
    with pytest.raises(OutputOverflow, match="8 events wait, the limit is 8"):
        buffer.put(AudioCleared())
    with pytest.raises(OutputOverflow):
        buffer.put_response("r", part())


def test_an_item_counts_with_the_text_in_it() -> None:
    item = MessageItem(id="a", role="user", content=(InputText(text="x" * 1000),))
    added, done, shown = (
        ItemAdded(previous_item_id=None, item=item),
        ItemDone(previous_item_id=None, item=item),
        ItemRetrieved(item=item),
    )
    assert [booked_bytes(event) for event in (added, done, shown)] == [EVENT_BYTES + 1000] * 3
    assert booked_bytes(AudioCleared()) == EVENT_BYTES


def test_sound_that_is_sent_counts_with_its_bytes() -> None:
    sound = AudioDelta(
        response_id="r", item_id="i", output_index=0, content_index=0, delta=bytes(960)
    )
    assert booked_bytes(sound) == EVENT_BYTES + 960


def test_too_many_bytes_of_text_are_refused() -> None:
    buffer = make_buffer()
    buffer.put_response("r", text("x" * 7000))
    with pytest.raises(OutputOverflow, match="8256 bytes would wait, the limit is 8000"):
        buffer.put_response("r", text("x" * (1000 - EVENT_BYTES)))


@pytest.mark.parametrize("full_of", [AudioCleared(), text("x" * 7700)])
def test_progress_is_left_out_where_there_is_no_room(full_of: Event) -> None:
    buffer = make_buffer(OutputLimits(audio_ms=1000, held_bytes=8000, events=1))
    buffer.put_response("r", full_of)
    buffer.put(RateLimitsUpdated())
    assert buffer.dropped_events == 1
    assert buffer.held_events == 1


def test_the_end_of_a_response_is_never_refused() -> None:
    buffer = make_buffer(OutputLimits(audio_ms=1000, held_bytes=300, events=1))
    buffer.put(AudioCleared())
    buffer.put_response("r", part(), always=True)
    buffer.close("r")
    assert [buffer.take_event(), buffer.take_event()] == [AudioCleared(), part()]


class BufferModel(RuleBasedStateMachine):
    """The buffer against plain lists: accounting, order within a response, bounds."""

    @initialize()
    def start(self) -> None:
        self.buffer = make_buffer(responses=())
        self.names = count()
        self.open: dict[str, list[Event | int]] = {}
        self.control: list[Event] = []

    @rule()
    def open_one(self) -> None:
        if len(self.open) < 3:
            response_id = f"r{next(self.names)}"
            self.buffer.open(response_id)
            self.open[response_id] = []

    @rule()
    def put(self) -> None:
        event = ItemDeleted(item_id=str(next(self.names)))
        try:
            self.buffer.put(event)
        except OutputOverflow:
            return
        self.control.append(event)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), size=st.integers(0, 400), always=st.booleans(), clearable=st.booleans())
    def put_response(self, data: st.DataObject, size: int, always: bool, clearable: bool) -> None:
        response_id = data.draw(st.sampled_from(sorted(self.open)))
        name = str(next(self.names))
        event: Event = ItemDeleted(item_id=name)
        if clearable:
            event = text(name + "x" * size, response_id)
        try:
            self.buffer.put_response(response_id, event, always=always)
        except OutputOverflow:
            assert not always
            return
        self.open[response_id].append(event)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), samples=st.integers(1, 600))
    def put_speech(self, data: st.DataObject, samples: int) -> None:
        response_id = data.draw(st.sampled_from(sorted(self.open)))
        try:
            self.buffer.put_speech(response_id, pcm(samples))
        except OutputOverflow:
            return
        entries = self.open[response_id]
        if entries and isinstance(entries[-1], int):
            samples += entries.pop()  # type: ignore[operator]
        entries.append(samples)

    @rule()
    def take_event(self) -> None:
        event = self.buffer.take_event()
        if self.control:
            assert event == self.control.pop(0)
            return
        heads = {
            name: entries[0]
            for name, entries in self.open.items()
            if entries and not isinstance(entries[0], int)
        }
        assert (event in heads.values()) if heads else (event is None)
        for name, head in heads.items():
            if head == event:
                del self.open[name][0]
                break

    @rule(most=st.integers(1, 300), least=st.integers(0, 200))
    def take_speech(self, most: int, least: int) -> None:
        taken = self.buffer.take_speech(most, min(most, least))
        if taken is not None:
            samples = len(taken.pcm) // 2
            entries = self.open[taken.response_id]
            head = entries[0]
            assert isinstance(head, int)
            assert samples == min(most, head)
            entries[0] = head - samples
            if not entries[0]:
                del entries[0]

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def interrupt(self, data: st.DataObject) -> None:
        response_id = data.draw(st.sampled_from(sorted(self.open)))
        self.buffer.clear(response_id)
        self.buffer.close(response_id)
        self.control += [
            event
            for event in self.open.pop(response_id)
            if not isinstance(event, int) and event.on_interruption is not OnInterruption.CLEARABLE
        ]

    @invariant()
    def accounts_are_true(self) -> None:
        if not hasattr(self, "buffer"):
            return
        buffer = self.buffer
        assert buffer.count_held() == (buffer.held_bytes, buffer.held_events)
        assert bool(buffer) is bool(self.control or any(self.open.values()))
        for response_id, entries in self.open.items():
            waiting = sum(entry for entry in entries if isinstance(entry, int))
            assert buffer.speech_samples(response_id) == waiting <= 1000
            assert buffer.is_empty(response_id) is not bool(entries)
        has_speech = any(isinstance(e, int) for entries in self.open.values() for e in entries)
        assert buffer.has_speech() is has_speech


TestBufferModel = BufferModel.TestCase
TestBufferModel.settings = settings(max_examples=settings().max_examples // 4)
