"""From what a plugin says to events at the pace of playback."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import PluginError
from duologue.core.ids import id_maker
from duologue.engines.payloads import SpeechMark, TokenUsage
from duologue.protocol.audio_formats import AudioFormat, PcmFormat, PcmuFormat
from duologue.protocol.commands import ResponseParams
from duologue.protocol.events import AudioCleared, Event, ItemAdded, ItemDeleted
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_config import response_config
from duologue.protocol.response_events import (
    AudioDelta,
    AudioTranscriptDelta,
    OutputItemAdded,
    ResponseCreated,
    ResponseDone,
    TextDelta,
)
from duologue.protocol.session_config import SessionConfig
from duologue.sessions.history import History
from duologue.sessions.output_buffer import OutputLimits, OutputOverflow
from duologue.sessions.response import Response, ResponseState
from duologue.sessions.speaking import Pace, Speaking

RATE_HZ = 24000
MS = RATE_HZ // 1000
T = 100.0
ALL = 1 << 30


def pcm(ms: int) -> bytes:
    return b"\x01\x00" * (ms * MS)


class Bench:
    """A mouth, and a client that reads when a test says so."""

    def __init__(
        self,
        pace: Pace | None = None,
        limits: OutputLimits | None = None,
        max_items: int = 100,
        output_format: AudioFormat | None = None,
    ) -> None:
        self.history = History(max_items)
        self.speaking = Speaking(
            self.history,
            limits or OutputLimits(),
            pace or Pace(),
            RATE_HZ,
            id_maker(random.Random(0)),
        )
        self.config = SessionConfig(output_format=output_format or PcmFormat())

    def begin(self, name: str = "r", **params: object) -> Response:
        wanted = ResponseParams(**params)  # type: ignore[arg-type]
        return self.speaking.begin(name, response_config(self.config, wanted), T)

    def pull(self, now: float = T, max_bytes: int = ALL) -> list[Event]:
        self.speaking.let_pass(now)
        return self.speaking.pull(now, max_bytes)

    def sent_ms(self, now: float, max_bytes: int = ALL) -> list[int]:
        """Lengths of the pieces of speech that may go out now."""
        return pieces(self.pull(now, max_bytes))


def pieces(events: Sequence[Event]) -> list[int]:
    return [len(event.delta) // 2 // MS for event in events if isinstance(event, AudioDelta)]


def done(events: Sequence[Event]) -> ResponseDone:
    (event,) = [event for event in events if isinstance(event, ResponseDone)]
    return event


# Order


def test_a_response_is_created_before_anything_else_of_it() -> None:
    bench = Bench()
    response = bench.begin()
    bench.speaking.say_text(response, "Hello", T)
    events = bench.pull()
    assert isinstance(events[0], ResponseCreated)
    assert [type(event) for event in events[1:3]] == [OutputItemAdded, ItemAdded]
    assert isinstance(events[-1], AudioTranscriptDelta)


def test_an_item_is_announced_before_one_that_names_it() -> None:
    bench = Bench()
    response = bench.begin()
    bench.speaking.say_text(response, "Hello", T)
    later = MessageItem(id="later", role="user")
    bench.history.add(later)
    bench.speaking.emit(ItemAdded(previous_item_id=bench.history.previous_id("later"), item=later))
    added = [event.item.id for event in bench.pull() if isinstance(event, ItemAdded)]
    assert added == [response.item_id, "later"]


def test_text_is_said_when_the_speech_before_it_was_sent() -> None:
    bench = Bench()
    response = bench.begin()
    bench.speaking.say_text(response, "one", T)
    bench.speaking.say_audio(response, pcm(300), (), T)
    bench.speaking.say_text(response, " two", T)
    shown = [e.delta if isinstance(e, AudioTranscriptDelta) else len(e.delta) // 2 // MS
             for e in bench.pull() if isinstance(e, AudioTranscriptDelta | AudioDelta)]  # fmt: skip
    assert shown == ["one", 200, 100, " two"]


def test_a_response_ends_when_all_of_it_was_sent() -> None:
    bench = Bench()
    response = bench.begin()
    bench.speaking.say_text(response, "Hello.", T)
    bench.speaking.say_audio(response, pcm(100), (), T)
    bench.speaking.generated(response, "completed", "", TokenUsage(3, 4))
    assert response.state is ResponseState.DRAINING
    resource = done(bench.pull()).response
    assert resource.status == "completed"
    assert resource.usage is not None
    assert resource.usage.total_tokens == 7
    assert response.state is ResponseState.ENDED
    assert bench.speaking.get("r") is None
    assert bench.speaking.unsettled
    sent, ended = bench.speaking.settle()
    assert (list(sent), ended) == (["r"], [response])
    assert not bench.speaking.unsettled
    assert bench.speaking.settle() == ({}, [])
    assert len(bench.speaking) == 0


def test_a_response_that_said_nothing_ends_at_once() -> None:
    bench = Bench()
    bench.speaking.generated(bench.begin(), "incomplete", "max_output_tokens", None)
    assert done(bench.pull()).response.status == "incomplete"


def test_a_written_answer_ends_with_its_last_word() -> None:
    bench = Bench()
    response = bench.begin(output_modalities=("text",))
    bench.speaking.say_text(response, "Hello.", T)
    bench.speaking.generated(response, "completed", "", None)
    events = bench.pull()
    assert [event.delta for event in events if isinstance(event, TextDelta)] == ["Hello."]
    done(events)


def test_the_tail_that_the_resampler_keeps_back_is_sent_at_the_end() -> None:
    bench = Bench(output_format=PcmuFormat())
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(200), (), T)
    bench.speaking.generated(response, "completed", "", None)
    sent = [event.delta for event in bench.pull() if isinstance(event, AudioDelta)]
    assert len(b"".join(sent)) == 1600


def test_an_end_without_speech_has_no_tail() -> None:
    bench = Bench(output_format=PcmuFormat())
    response = bench.begin()
    bench.speaking.say_text(response, "Hello.", T)
    bench.speaking.generated(response, "completed", "", None)
    assert pieces(bench.pull()) == []


def test_a_full_conversation_forgets_the_oldest_item_and_says_so() -> None:
    bench = Bench(max_items=1)
    bench.history.add(MessageItem(id="old", role="user", content=(InputText(text="a"),)))
    response = bench.begin()
    bench.speaking.say_text(response, "Hello", T)
    events = bench.pull()
    assert ItemDeleted(item_id="old") in events
    (added,) = [event for event in events if isinstance(event, ItemAdded)]
    assert added.previous_item_id is None


def test_an_answer_out_of_band_leaves_the_conversation_alone() -> None:
    bench = Bench()
    response = bench.begin(conversation="none")
    bench.speaking.say_text(response, "Hello", T)
    assert len(bench.history) == 0
    assert bench.speaking.active is None
    assert bench.speaking.all() == [response]
    bench.speaking.generated(response, "completed", "", None)
    assert not any(isinstance(event, ItemAdded) for event in bench.pull())


def test_an_answer_whose_item_was_deleted_ends_all_the_same() -> None:
    bench = Bench()
    response = bench.begin()
    bench.speaking.say_text(response, "Hello", T)
    bench.history.delete(response.item_id)
    bench.speaking.generated(response, "completed", "", None)
    done(bench.pull())


# Pace


def test_speech_is_sent_in_pieces_at_most_the_lead_ahead_of_playback() -> None:
    bench = Bench(Pace(lead_ms=1000, delta_ms=200))
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(3000), (), T)
    assert bench.sent_ms(T) == [200] * 5
    assert not bench.speaking.has_output()
    assert bench.speaking.paced_until == pytest.approx(T + 0.2)
    assert bench.sent_ms(T + 0.1) == []
    assert bench.sent_ms(T + 0.2) == [200]
    assert bench.sent_ms(T + 1.0) == [200] * 4


def test_without_a_lead_everything_is_sent_at_once() -> None:
    bench = Bench(Pace(lead_ms=None, delta_ms=200))
    bench.speaking.say_audio(bench.begin(), pcm(3000), (), T)
    assert sum(bench.sent_ms(T)) == 3000
    assert bench.speaking.paced_until is None


def test_events_do_not_wait_for_the_pace() -> None:
    bench = Bench(Pace(lead_ms=200, delta_ms=200))
    bench.speaking.say_audio(bench.begin(), pcm(3000), (), T)
    bench.pull()
    assert not bench.speaking.has_output()
    bench.speaking.emit(AudioCleared())
    assert bench.speaking.has_output()
    assert bench.pull() == [AudioCleared()]


def test_the_first_speech_goes_at_once_however_short() -> None:
    bench = Bench()
    bench.speaking.say_audio(bench.begin(), pcm(20), (), T)
    assert bench.sent_ms(T) == [20]


def test_short_pieces_wait_to_be_merged_unless_the_person_would_run_dry() -> None:
    bench = Bench(Pace(merge_ms=100, dry_ms=250))
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(400), (), T)
    bench.pull()
    bench.speaking.say_audio(response, pcm(40), (), T)
    assert bench.sent_ms(T) == []
    assert bench.speaking.paced_until == pytest.approx(T + 0.15)
    assert not bench.speaking.has_output()
    assert bench.sent_ms(T + 0.15) == [40]


def test_a_piece_that_has_grown_long_enough_goes_at_once() -> None:
    bench = Bench(Pace(merge_ms=100))
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(400), (), T)
    bench.pull()
    bench.speaking.say_audio(response, pcm(40), (), T)
    bench.pull()
    bench.speaking.say_audio(response, pcm(59), (), T)
    assert not bench.speaking.has_output()
    bench.speaking.say_audio(response, pcm(1), (), T)
    assert bench.speaking.has_output()
    assert bench.sent_ms(T) == [100]


def test_the_last_piece_of_an_answer_waits_for_nothing() -> None:
    bench = Bench(Pace(merge_ms=100))
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(440), (), T)
    assert bench.sent_ms(T) == [200, 200]
    bench.speaking.generated(response, "completed", "", None)
    assert bench.speaking.has_output()
    events = bench.pull()
    assert pieces(events) == [40]
    done(events)


def test_a_full_transport_takes_a_part_and_the_rest_later() -> None:
    bench = Bench()
    bench.speaking.say_audio(bench.begin(), pcm(1000), (), T)
    assert bench.sent_ms(T, max_bytes=9600) == [200]
    assert bench.speaking.has_output()
    assert sum(bench.sent_ms(T)) == 800


def test_a_full_transport_takes_a_part_of_the_text_too_and_the_rest_can_be_taken_back() -> None:
    bench = Bench()
    response = bench.begin(output_modalities=("text",))
    for _ in range(100):
        bench.speaking.say_text(response, "x" * 744, T)
    taken = bench.pull(max_bytes=10_000)
    assert sum(isinstance(event, TextDelta) for event in taken) <= 10
    bench.speaking.stop(response, "cancelled", "client_cancelled", T)
    assert not any(isinstance(event, TextDelta) for event in bench.pull())


@given(
    chunks=st.lists(st.integers(1, 700), min_size=1, max_size=20),
    waits=st.lists(st.floats(0, 1.5), min_size=1, max_size=40),
)
def test_the_lead_is_kept_and_nothing_is_lost_or_doubled(
    chunks: list[int], waits: list[float]
) -> None:
    pace = Pace(lead_ms=1000, delta_ms=200, merge_ms=100, dry_ms=250)
    bench = Bench(pace)
    response, now, sent = bench.begin(), T, 0
    for ms in chunks:
        bench.speaking.say_audio(response, pcm(ms), (), now)
    bench.speaking.generated(response, "completed", "", None)
    for wait_s in [*waits, 60.0]:
        now += wait_s
        sent += sum(bench.sent_ms(now))
        assert bench.speaking.playback.lead_s(now) <= 1.0 + 1 / RATE_HZ
        while wait_s == 60.0 and bench.speaking.paced_until is not None:
            now = bench.speaking.paced_until
            sent += sum(bench.sent_ms(now))
    assert sent == sum(chunks)
    assert response.state is ResponseState.ENDED


# Being stopped


def test_a_stopped_response_says_nothing_more_and_tells_how_much_was_heard() -> None:
    bench = Bench(Pace(lead_ms=500))
    response = bench.begin()
    bench.speaking.say_text(response, "Hello there.", T)
    bench.speaking.say_audio(response, pcm(3000), (), T)
    bench.pull()
    bench.speaking.say_text(response, " And more.", T)
    heard = bench.speaking.stop(response, "cancelled", "turn_detected", T + 0.3)
    assert heard == 300 * MS == response.spoken.cut_sample
    events = bench.pull(T + 9)
    assert pieces(events) == []
    resource = done(events).response
    assert resource.status == "cancelled"
    assert resource.output[0].content[0].transcript == "Hello there."  # type: ignore[union-attr]
    assert not bench.speaking.has_output()
    assert bench.speaking.buffer.held_bytes == 0


@pytest.mark.parametrize("generated", [True, False])
def test_what_waits_for_the_pace_is_stopped_too(generated: bool) -> None:
    bench = Bench(Pace(lead_ms=200))
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(3000), (), T)
    if generated:
        bench.speaking.generated(response, "completed", "", None)
    bench.pull()
    bench.speaking.stop(response, "cancelled", "turn_detected", T)
    assert bench.speaking.paced_until is None
    assert bench.speaking.has_output()
    assert done(bench.pull()).response.status == "cancelled"


def test_a_response_without_output_can_be_stopped() -> None:
    bench = Bench()
    assert bench.speaking.stop(bench.begin(), "failed", "stage_failed", T) == 0
    assert done(bench.pull()).response.output == ()


def test_a_written_answer_has_no_heard_part() -> None:
    bench = Bench()
    response = bench.begin(output_modalities=("text",))
    bench.speaking.say_text(response, "Hello", T)
    assert bench.speaking.stop(response, "cancelled", "client_cancelled", T) == 0
    assert response.spoken.cut_sample is None


def test_what_has_ended_may_still_be_playing_and_can_be_silenced() -> None:
    bench = Bench()
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(1000), (), T)
    bench.speaking.generated(response, "completed", "", None)
    bench.pull()
    assert bench.speaking.silence(T + 0.4) == [(response.item_id, 400 * MS)]
    assert bench.speaking.silence(T + 0.5) == []


# What the person hears


def test_an_answer_is_audible_once_something_of_it_was_heard() -> None:
    bench = Bench()
    response = bench.begin()
    assert not bench.speaking.is_audible(T)
    bench.speaking.say_audio(response, pcm(1000), (), T)
    assert not bench.speaking.is_audible(T)
    bench.pull()
    assert not bench.speaking.is_audible(T)
    assert bench.speaking.is_audible(T + 0.1)


def test_an_answer_that_still_plays_is_audible_though_the_next_one_has_begun() -> None:
    bench = Bench()
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(1000), (), T)
    bench.speaking.generated(response, "completed", "", None)
    bench.pull()
    following = bench.begin("s")
    bench.speaking.say_audio(following, pcm(500), (), T)
    bench.pull(T + 0.1)
    assert bench.speaking.is_audible(T + 0.1)
    bench.speaking.silence(T + 0.2)
    assert not bench.speaking.is_audible(T + 0.2)


def test_an_answer_in_a_gap_of_its_own_is_still_audible() -> None:
    bench = Bench()
    bench.speaking.say_audio(bench.begin(), pcm(100), (), T)
    bench.pull()
    assert bench.speaking.is_audible(T + 5)


def test_text_is_complete_with_the_last_sample_unless_the_answer_failed() -> None:
    bench = Bench()
    for name, status in (("r", "completed"), ("s", "failed")):
        response = bench.begin(name)
        bench.speaking.say_text(response, "one two three", T)
        bench.speaking.say_audio(response, pcm(200), (SpeechMark(3, 200 * MS),), T)
        bench.speaking.generated(response, status, "", None)
        heard = "one two three" if status == "completed" else "one"
        assert response.spoken.heard_text() == heard


# Limits and mistakes


def test_what_is_sent_may_be_granted_once() -> None:
    bench = Bench()
    response = bench.begin()
    assert not bench.speaking.unsettled
    bench.speaking.say_audio(response, pcm(300), (), T)
    bench.pull()
    assert bench.speaking.unsettled
    assert bench.speaking.settle() == ({"r": 300 * MS}, [])
    assert bench.speaking.settle() == ({}, [])


def test_speech_in_a_written_answer_counts_as_sent_and_is_heard_by_nobody() -> None:
    bench = Bench()
    response = bench.begin(output_modalities=("text",))
    bench.speaking.say_audio(response, pcm(300), (SpeechMark(1, 2),), T)
    assert bench.speaking.settle() == ({"r": 300 * MS}, [])
    assert pieces(bench.pull()) == []
    assert response.item_id == ""


def test_part_of_a_sample_is_a_mistake_of_the_plugin() -> None:
    bench = Bench()
    with pytest.raises(PluginError, match="3 bytes: no whole number of samples"):
        bench.speaking.say_audio(bench.begin(), b"\x00" * 3, (), T)


def test_too_much_speech_is_refused_and_the_response_can_still_end() -> None:
    bench = Bench(limits=OutputLimits(audio_ms=1000))
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(1000), (), T)
    with pytest.raises(OutputOverflow):
        bench.speaking.say_audio(response, pcm(1), (), T)
    bench.speaking.stop(response, "failed", "output_overflow", T)
    assert done(bench.pull()).response.status == "failed"


def test_the_beginning_of_an_answer_is_whole_or_not_at_all() -> None:
    bench = Bench(limits=OutputLimits(events=1))
    response = bench.begin()
    with pytest.raises(OutputOverflow):
        bench.speaking.say_text(response, "Hello", T)
    bench.speaking.stop(response, "failed", "output_overflow", T)
    kinds = [type(event) for event in bench.pull()]
    assert kinds.count(OutputItemAdded) == 1
    assert kinds.index(OutputItemAdded) < kinds.index(ResponseDone)


def test_an_event_that_does_not_fit_is_noted() -> None:
    bench = Bench(limits=OutputLimits(events=1))
    bench.speaking.emit(AudioCleared())
    assert not bench.speaking.overflowed
    bench.speaking.emit(AudioCleared())
    assert bench.speaking.overflowed
