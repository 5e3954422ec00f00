"""From what a plugin says to events at the pace of playback."""

from __future__ import annotations

import pytest

from duologue.core.errors import PluginError
from duologue.engines.payloads import SpeechMark, TokenUsage
from duologue.protocol.audio_formats import PcmuFormat
from duologue.protocol.events import AudioCleared, ItemAdded, ItemDeleted
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import (
    AudioDelta,
    AudioTranscriptDelta,
    OutputItemAdded,
    OutputTextDelta,
    ResponseCreated,
    ResponseDone,
)
from duologue.sessions.speaking.output_buffer import OutputLimits, OutputOverflow
from duologue.sessions.speaking.pacing import Pace
from duologue.sessions.speaking.response import ResponseState
from tests.unit.sessions.speaking_bench import MS, Bench, T, done, pcm, pieces

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
    assert added == [response.messages[0].id, "later"]


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
    response.credited = True
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
    assert bench.speaking.has_news
    sent, ended = bench.speaking.take_news()
    assert (list(sent), ended) == (["r"], [response])
    assert not bench.speaking.has_news
    assert bench.speaking.take_news() == ({}, [])
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
    assert [event.delta for event in events if isinstance(event, OutputTextDelta)] == ["Hello."]
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
    bench.history.delete(response.messages[0].id)
    bench.speaking.generated(response, "completed", "", None)
    done(bench.pull())


# Being stopped


def test_a_stopped_response_says_nothing_more_and_tells_how_much_was_heard() -> None:
    bench = Bench(Pace(lead_ms=500))
    response = bench.begin()
    bench.speaking.say_text(response, "Hello there.", T)
    bench.speaking.say_audio(response, pcm(3000), (), T)
    bench.pull()
    bench.speaking.say_text(response, " And more.", T)
    ((message, heard),) = bench.speaking.cut_off(response, "cancelled", "turn_detected", T + 0.3)
    assert message is response.messages[0]
    assert heard == 300 * MS == response.messages[0].spoken.cut_sample
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
    bench.speaking.cut_off(response, "cancelled", "turn_detected", T)
    assert bench.speaking.pacing.paced_until is None
    assert bench.speaking.has_output()
    assert done(bench.pull()).response.status == "cancelled"


def test_a_response_without_output_can_be_stopped() -> None:
    bench = Bench()
    assert bench.speaking.cut_off(bench.begin(), "failed", "stage_failed", T) == []
    assert done(bench.pull()).response.output == ()


def test_a_written_answer_has_no_heard_part() -> None:
    bench = Bench()
    response = bench.begin(output_modalities=("text",))
    bench.speaking.say_text(response, "Hello", T)
    cut = bench.speaking.cut_off(response, "cancelled", "client_cancelled", T)
    assert cut == [(response.messages[0], 0)]
    assert response.messages[0].spoken.cut_sample is None


def test_what_has_ended_may_still_be_playing_and_can_be_silenced() -> None:
    bench = Bench()
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(1000), (), T)
    bench.speaking.generated(response, "completed", "", None)
    bench.pull()
    assert bench.speaking.stop_playback(T + 0.4) == [(response.messages[0].id, 400 * MS)]
    assert bench.speaking.stop_playback(T + 0.5) == []


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
    bench.speaking.stop_playback(T + 0.2)
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
        assert response.messages[0].spoken.heard_text() == heard


# Limits and mistakes


def test_what_is_sent_may_be_granted_once_where_a_stage_works_for_the_answer() -> None:
    bench = Bench()
    response = bench.begin()
    response.credited = True
    bench.speaking.take_news()
    bench.speaking.say_audio(response, pcm(300), (), T)
    bench.pull()
    assert bench.speaking.has_news
    assert bench.speaking.take_news() == ({"r": 300 * MS}, [])
    assert bench.speaking.take_news() == ({}, [])


def test_where_no_stage_works_for_an_answer_sound_leaves_nothing_to_settle() -> None:
    bench = Bench()
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(300), (), T)
    bench.pull()
    bench.speaking.take_news()
    bench.speaking.say_audio(response, pcm(300), (), T)
    bench.pull()
    assert not bench.speaking.has_news
    assert bench.speaking.take_news() == ({}, [])


def test_speech_in_a_written_answer_counts_as_sent_and_is_heard_by_nobody() -> None:
    bench = Bench()
    response = bench.begin(output_modalities=("text",))
    response.credited = True
    bench.speaking.say_audio(response, pcm(300), (SpeechMark(1, 2),), T)
    assert bench.speaking.take_news() == ({"r": 300 * MS}, [])
    assert pieces(bench.pull()) == []
    assert response.items == []


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
    bench.speaking.cut_off(response, "failed", "output_overflow", T)
    assert done(bench.pull()).response.status == "failed"


def test_the_beginning_of_an_answer_is_whole_or_not_at_all() -> None:
    bench = Bench(limits=OutputLimits(events=1))
    response = bench.begin()
    with pytest.raises(OutputOverflow):
        bench.speaking.say_text(response, "Hello", T)
    bench.speaking.cut_off(response, "failed", "output_overflow", T)
    kinds = [type(event) for event in bench.pull()]
    assert kinds.count(OutputItemAdded) == 1
    assert kinds.index(OutputItemAdded) < kinds.index(ResponseDone)


def test_an_event_that_does_not_fit_is_noted() -> None:
    bench = Bench(limits=OutputLimits(events=1))
    bench.speaking.emit(AudioCleared())
    assert not bench.speaking.overflowed
    bench.speaking.emit(AudioCleared())
    assert bench.speaking.overflowed


@pytest.mark.parametrize("modality", ["audio", "text"])
def test_it_knows_whether_anything_was_said_yet(modality: str) -> None:
    bench = Bench()
    response = bench.begin(output_modalities=(modality,))
    assert not bench.speaking.has_spoken
    bench.speaking.say_audio(response, pcm(20), (), T)
    assert bench.speaking.has_spoken
