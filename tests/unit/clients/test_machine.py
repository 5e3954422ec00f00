from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from duologue.clients.effects import ClientEffect, Send, SilenceSpeaker
from duologue.clients.machine import CallMachine
from duologue.clients.playback import Playback
from duologue.clients.track import FromTrack, TrackAudio, TrackDone
from duologue.clients.transcript import Line, LineState
from duologue.protocol.audio_formats import PcmuFormat
from duologue.protocol.commands import CancelResponse, ClearOutputAudio, RetrieveItem, TruncateItem
from duologue.protocol.events import (
    AudioCommitted,
    Event,
    ItemAdded,
    ItemDeleted,
    ItemRetrieved,
    OutputBufferCleared,
    OutputBufferStarted,
    OutputBufferStopped,
    TranscriptionDelta,
    TranscriptionError,
    TranscriptionFailed,
)
from duologue.protocol.items import FunctionCallItem, InputText, MessageItem
from duologue.protocol.json_codec import UnknownEvent
from duologue.protocol.response_events import OutputItemAdded, OutputTextDelta, TextDone
from duologue.protocol.session_config import SemanticVad
from tests.fakes.server import (
    FakeAnswer,
    greeting,
    speech_started,
    speech_stopped,
    transcribed,
)

FRAME = 480
"""20 ms."""


class Caller:
    """A machine, its loudspeaker, and what it wanted."""

    def __init__(self) -> None:
        self.machine = CallMachine(Playback(24_000))
        self.now = 100.0
        self.commands: list[object] = []
        self.silenced = 0
        self.hear(greeting())

    def hear(self, *events: Event | UnknownEvent | FromTrack) -> None:
        for event in events:
            self.perform(self.machine.on_event(event, None, self.now))

    def perform(self, effects: Sequence[ClientEffect]) -> None:
        for effect in effects:
            if isinstance(effect, SilenceSpeaker):
                self.silenced += 1
                self.perform(self.machine.silenced())
            else:
                self.commands.append(effect.command)

    def listen(self, milliseconds: int) -> None:
        for _ in range(milliseconds // 20):
            self.machine.take(FRAME, self.now)
            self.now += 0.02

    def speak(self, milliseconds: int) -> None:
        for _ in range(milliseconds // 20):
            self.now += 0.02
            self.machine.sent_audio(0.02, self.now)

    def line(self, item_id: str) -> Line:
        line = self.machine.transcript.get(item_id)
        assert line is not None
        return line


@pytest.fixture
def caller() -> Caller:
    return Caller()


def speaking(caller: Caller, text: str, milliseconds: int) -> FakeAnswer:
    answer = FakeAnswer("a")
    caller.hear(answer.created(), answer.item_added(), answer.text(text))
    caller.hear(answer.audio(milliseconds))
    return answer


def test_an_interruption_silences_and_says_how_much_was_heard(caller: Caller) -> None:
    answer = speaking(caller, "one two three four five six", 2700)
    caller.listen(1000)
    caller.hear(speech_started("item_q"))
    assert caller.silenced == 1
    assert caller.commands == [
        TruncateItem(item_id=answer.item_id, audio_end_ms=1000),
        RetrieveItem(item_id=answer.item_id),
    ]
    assert caller.machine.playback.waiting_samples == 0
    line = caller.line(answer.item_id)
    assert (line.state, line.heard_text) == (LineState.CUT, "one two")


@pytest.fixture
def on_track(caller: Caller) -> FakeAnswer:
    """An answer whose sound the server plays has begun."""
    caller.machine.server_plays = True
    answer = FakeAnswer("a")
    caller.hear(answer.created(), answer.item_added(), answer.text("one two three four"))
    caller.hear(OutputBufferStarted(response_id=answer.response_id))
    return answer


def sound(answer: FakeAnswer, milliseconds: int) -> TrackAudio:
    pcm = answer.audio(milliseconds).delta
    return TrackAudio(response_id=answer.response_id, item_id=answer.item_id, pcm=pcm)


def test_on_a_track_an_answer_is_done_when_it_was_heard(
    caller: Caller, on_track: FakeAnswer
) -> None:
    caller.hear(sound(on_track, 500), on_track.audio_done(), on_track.done())
    caller.listen(500)
    assert caller.machine.active_response_id is None
    assert caller.machine.answering
    assert caller.line(on_track.item_id).state is LineState.OPEN
    caller.hear(sound(on_track, 500), OutputBufferStopped(response_id=on_track.response_id))
    end = TrackDone(response_id=on_track.response_id, item_id=on_track.item_id)
    caller.hear(sound(on_track, 100), end)
    caller.listen(600)
    assert not caller.machine.answering
    line = caller.line(on_track.item_id)
    assert (line.state, line.heard_text) == (LineState.DONE, "one two three four")


def test_on_a_track_the_server_knows_what_was_heard(caller: Caller, on_track: FakeAnswer) -> None:
    caller.hear(sound(on_track, 500), on_track.done())
    caller.listen(200)
    caller.perform(caller.machine.interrupt())
    assert caller.commands == [ClearOutputAudio(), RetrieveItem(item_id=on_track.item_id)]
    caller.hear(OutputBufferCleared(response_id=on_track.response_id), sound(on_track, 100))
    assert not caller.machine.answering
    assert caller.line(on_track.item_id).state is LineState.CUT


def test_on_a_track_an_answer_that_was_cut_before_it_sounded_is_over(caller: Caller) -> None:
    caller.machine.server_plays = True
    answer = FakeAnswer("a")
    caller.hear(answer.created(), answer.item_added(), answer.text("one"), answer.done("cancelled"))
    assert caller.line(answer.item_id).state is LineState.CUT


def test_a_function_call_is_no_line(caller: Caller) -> None:
    call = FunctionCallItem(id="item_f", name="look", status="in_progress")
    caller.hear(FakeAnswer("a").created())
    caller.hear(OutputItemAdded(response_id="resp_a", output_index=0, item=call))
    assert list(caller.machine.transcript) == []


def test_the_servers_item_replaces_the_estimate(caller: Caller) -> None:
    answer = speaking(caller, "one two three four five six", 2700)
    caller.listen(1000)
    caller.hear(speech_started("item_q"), ItemRetrieved(item=answer.item("one two three")))
    line = caller.line(answer.item_id)
    assert (line.heard_text, line.exact) == ("one two three", True)


def test_nothing_of_an_interrupted_answer_is_played_any_more(caller: Caller) -> None:
    answer = speaking(caller, "one two", 500)
    caller.hear(speech_started("item_q"), answer.audio(500), answer.audio_done())
    assert caller.machine.playback.waiting_samples == 0
    caller.hear(answer.text_done(), answer.done("cancelled"))
    assert caller.machine.active_response_id is None
    assert caller.line(answer.item_id).state is LineState.CUT


def test_an_answer_that_was_heard_whole_is_not_truncated(caller: Caller) -> None:
    answer = speaking(caller, "one two", 500)
    caller.hear(answer.audio_done(), answer.text_done(), answer.done())
    caller.listen(600)
    assert caller.line(answer.item_id).state is LineState.DONE
    caller.hear(speech_started("item_q"))
    assert caller.commands == []


def test_an_answer_that_is_still_being_heard_after_its_end_is_truncated(caller: Caller) -> None:
    answer = speaking(caller, "one two", 500)
    caller.hear(answer.audio_done(), answer.text_done(), answer.done())
    caller.listen(200)
    assert caller.machine.answering
    caller.hear(speech_started("item_q"))
    assert caller.commands[0] == TruncateItem(item_id=answer.item_id, audio_end_ms=200)
    assert not caller.machine.answering


def test_speech_does_not_interrupt_where_that_is_switched_off(caller: Caller) -> None:
    caller.hear(greeting(SemanticVad(interrupt_response=False)))
    speaking(caller, "one two", 500)
    caller.hear(speech_started("item_q"))
    assert caller.commands == []
    assert caller.machine.playback.waiting_samples == 500 * 24


def test_taking_the_floor_cancels_first_and_then_tells_what_was_heard(caller: Caller) -> None:
    answer = speaking(caller, "one two", 500)
    caller.listen(100)
    caller.perform(caller.machine.interrupt())
    assert caller.commands == [
        CancelResponse(response_id=answer.response_id),
        TruncateItem(item_id=answer.item_id, audio_end_ms=100),
        RetrieveItem(item_id=answer.item_id),
    ]


def test_what_the_sound_card_threw_away_does_not_count_as_heard(caller: Caller) -> None:
    speaking(caller, "one two", 500)
    caller.listen(300)
    assert list(caller.machine.interrupt())[1] == SilenceSpeaker()
    truncate = caller.machine.silenced(unplayed_samples=80 * 24)[0]
    assert isinstance(truncate, Send)
    assert truncate.command == TruncateItem(item_id="item_a", audio_end_ms=220)


def test_an_answer_that_no_longer_fits_is_given_up(caller: Caller) -> None:
    machine = CallMachine(Playback(24_000, capacity_s=1))
    answer = FakeAnswer("a")
    machine.on_event(answer.created(), None, 0.0)
    effects = [
        effect for _ in range(3) for effect in machine.on_event(answer.audio(600), None, 0.0)
    ]
    assert effects == [Send(CancelResponse(response_id=answer.response_id)), SilenceSpeaker()]


def test_the_moments_of_a_turn_are_told_on_the_callers_clock(caller: Caller) -> None:
    caller.speak(2000)
    caller.hear(speech_started("item_q", 500), speech_stopped("item_q", 1800))
    caller.now = 102.5
    caller.hear(transcribed("item_q", "What?"))
    answer = FakeAnswer("a")
    caller.now = 103.0
    caller.hear(answer.created(), answer.text("That."))
    caller.now = 103.2
    caller.hear(answer.audio(10, b"\0\0"), answer.audio(500))
    caller.listen(100)
    caller.hear(answer.done())
    (turn,) = caller.machine.timing
    assert turn.speech_from == pytest.approx(100.5)
    assert turn.speech_until == pytest.approx(101.8)
    assert turn.end_of_turn_at == pytest.approx(102.0)
    assert turn.transcribed_at == pytest.approx(102.5)
    assert turn.response_at == turn.first_text_at == pytest.approx(103.0)
    assert turn.first_audio_at == pytest.approx(103.2)
    assert turn.audible_at == pytest.approx(103.21)
    assert turn.done_at == pytest.approx(103.3)
    assert turn.wait_s == pytest.approx(1.41)


def test_both_sides_are_in_the_transcript_in_the_order_of_speaking(caller: Caller) -> None:
    caller.hear(
        speech_started("item_q"),
        TranscriptionDelta(item_id="item_q", delta="What "),
        transcribed("item_q", "What time is it?"),
    )
    answer = speaking(caller, "Noon.", 300)
    caller.hear(answer.audio_done(), answer.done())
    caller.listen(400)
    assert str(caller.machine.transcript) == "caller: What time is it?\nassistant: Noon."


def test_typed_text_is_a_turn(caller: Caller) -> None:
    item = MessageItem(id="item_t", role="user", content=(InputText(text="Hi"),))
    caller.hear(ItemAdded(previous_item_id=None, item=item))
    assert caller.line("item_t").state is LineState.DONE
    assert str(caller.machine.transcript) == "caller: Hi"
    (turn,) = caller.machine.timing
    assert turn.speech_until == caller.now


def test_a_turn_that_was_ended_by_hand_has_its_answer(caller: Caller) -> None:
    caller.hear(AudioCommitted(previous_item_id=None, item_id="item_q"))
    answer = FakeAnswer("a")
    caller.hear(answer.created())
    (turn,) = caller.machine.timing
    assert turn.end_of_turn_at == caller.now
    assert turn.response_id == answer.response_id
    assert turn.speech_until is None


def test_a_written_answer_is_read_as_it_comes(caller: Caller) -> None:
    answer = FakeAnswer("w")
    place = {
        "response_id": answer.response_id,
        "item_id": answer.item_id,
        "output_index": 0,
        "content_index": 0,
    }
    caller.hear(answer.created(), answer.item_added(), OutputTextDelta(**place, delta="Hel"))
    assert caller.line(answer.item_id).heard_text == "Hel"
    caller.hear(TextDone(**place, text="Hello"), answer.done())
    assert caller.line(answer.item_id).state is LineState.DONE


def test_an_answer_that_failed_before_a_sound_says_so(caller: Caller) -> None:
    answer = FakeAnswer("f")
    caller.hear(answer.created(), answer.item_added(), answer.done("failed"))
    assert caller.line(answer.item_id).state is LineState.FAILED


def test_speech_that_cannot_be_transcribed_says_so(caller: Caller) -> None:
    error = TranscriptionError(type="server_error", code="stage_failed", message="no")
    caller.hear(speech_started("item_q"), TranscriptionFailed(item_id="item_q", error=error))
    assert caller.line("item_q").state is LineState.FAILED


def test_other_output_formats_are_played_at_the_rate_of_the_loudspeaker(caller: Caller) -> None:
    answer = FakeAnswer("g", PcmuFormat())
    caller.hear(answer.created(), answer.audio(100, b"\x80"))
    waiting = caller.machine.playback.waiting_samples
    assert 24 * 290 < waiting <= 24 * 300


def test_a_deleted_item_leaves_the_transcript(caller: Caller) -> None:
    caller.hear(speech_started("item_q"), ItemDeleted(item_id="item_q"))
    assert len(caller.machine.transcript) == 0


def test_an_event_of_a_later_version_is_passed_by(caller: Caller) -> None:
    assert caller.machine.on_event(UnknownEvent(type="new", raw=b"{}"), 7, 0.0) == ()
    assert caller.machine.last_seq == 7


def test_speech_of_a_response_that_was_never_announced_is_not_played(caller: Caller) -> None:
    caller.hear(FakeAnswer("x").audio(100))
    assert caller.machine.playback.waiting_samples == 0


class CallModel(RuleBasedStateMachine):
    """Whatever the order of events: after an interruption its answers are silent and accounted for.

    Each item is truncated at most once, to no more than was heard, and heard text never shrinks
    or outgrows the text.
    """

    def __init__(self) -> None:
        super().__init__()
        self.caller = Caller()
        self.answers: list[FakeAnswer] = []
        self.interrupted: set[str] = set()
        self.heard: dict[str, int] = {}

    @rule()
    def answer_begins(self) -> None:
        answer = FakeAnswer(str(len(self.answers)))
        self.answers.append(answer)
        self.caller.hear(answer.created(), answer.item_added())

    @rule(data=st.data(), what=st.sampled_from(["text", "audio", "audio_done", "done", "cut"]))
    def answer_goes_on(self, data: st.DataObject, what: str) -> None:
        if not self.answers:
            return
        answer = data.draw(st.sampled_from(self.answers[-3:]))
        match what:
            case "text":
                self.caller.hear(answer.text("some words "))
            case "audio":
                self.caller.hear(answer.audio(data.draw(st.integers(0, 400))))
            case "audio_done":
                self.caller.hear(answer.audio_done())
            case "done":
                self.caller.hear(answer.done())
            case _:
                self.caller.hear(answer.done("cancelled"))

    @rule(milliseconds=st.integers(0, 500))
    def time_passes(self, milliseconds: int) -> None:
        for _ in range(milliseconds // 20):
            for item, count in self.caller.machine.take(FRAME, self.caller.now).runs:
                if item is not None:
                    assert item not in self.interrupted
                    self.heard[item] = self.heard.get(item, 0) + count
            self.caller.now += 0.02

    @rule(by_hand=st.booleans())
    def caller_interrupts(self, by_hand: bool) -> None:
        if by_hand:
            self.caller.perform(self.caller.machine.interrupt())
        else:
            self.caller.hear(speech_started(f"item_q{self.caller.now}"))
        self.interrupted |= {answer.item_id for answer in self.answers}
        assert self.caller.machine.playback.waiting_samples == 0

    @invariant()
    def each_item_is_truncated_once_to_what_was_heard(self) -> None:
        truncates = [each for each in self.caller.commands if isinstance(each, TruncateItem)]
        assert len({each.item_id for each in truncates}) == len(truncates)
        for each in truncates:
            assert each.audio_end_ms == self.heard.get(each.item_id, 0) // 24

    @invariant()
    def what_was_heard_is_part_of_the_text(self) -> None:
        for line in self.caller.machine.transcript:
            assert 0 <= line.heard <= len(line.text)


TestCall = CallModel.TestCase
