"""How answers are stopped: by the person, by the client, or because nothing comes."""

from __future__ import annotations

from duologue.duplex_plugins.contract import (
    Capabilities,
    ConversationChanged,
    EndResponse,
    Interrupted,
    ItemView,
    ResponseRequested,
    SayAudio,
    SayText,
    StartRequest,
)
from duologue.engines.payloads import SpeechMark
from duologue.protocol.events import ItemTruncated
from duologue.protocol.items import (
    InputAudio,
    MessageItem,
)
from duologue.protocol.response_events import ResponseDone
from duologue.protocol.response_resource import CLIENT_CANCELLED, TURN_DETECTED
from duologue.sessions.effects import CancelRequest, SubmitRequest
from tests.unit.sessions.dialogue_bench import MS, Bench, T, pcm, user

# Being stopped


def test_an_interruption_cancels_the_answer_and_its_work_and_tells_what_was_heard() -> None:
    bench = Bench()
    response = bench.request()
    bench.say(
        StartRequest(key="tts", pipeline="tts", response_id=response.id),
        SayText(response.id, "one two three"),
        SayAudio(response.id, pcm(3000), (SpeechMark(13, 3000 * MS),)),
    )
    bench.read()
    bench.dialogue.interrupt(T + 2.0)
    assert CancelRequest("s.1") in list(bench.requests.take_effects())
    assert bench.plugin.of(Interrupted) == [Interrupted(response.id, "one two")]
    (done,) = bench.of(ResponseDone)
    assert done.response.status_details.reason == TURN_DETECTED  # type: ignore[union-attr]
    (cut,) = bench.of(ItemTruncated)
    assert (cut.item_id, cut.audio_end_ms) == (response.messages[0].id, 2000)
    assert bench.events.index(done) < bench.events.index(cut)
    assert bench.history.view()[0] == ItemView(
        id=response.messages[0].id, role="assistant", text="one two", interrupted=True
    )


def test_late_output_of_an_interrupted_answer_goes_nowhere() -> None:
    bench = Bench()
    response = bench.request()
    bench.say(StartRequest(key="tts", pipeline="tts", response_id=response.id))
    (submitted,) = bench.requests.take_effects()
    assert isinstance(submitted, SubmitRequest)
    bench.dialogue.interrupt(T)
    assert not bench.requests.epochs.is_current(submitted.request.fence)


def test_an_answer_that_has_ended_but_still_plays_is_cut_too() -> None:
    bench = Bench()
    response = bench.speak()
    bench.say(EndResponse(response.id))
    bench.read()
    bench.dialogue.interrupt(T + 2.0)
    (cut,) = bench.of(ItemTruncated)
    assert cut.audio_end_ms == 2000
    assert bench.plugin.of(Interrupted) == [Interrupted(response.id, "one two")]
    assert len(bench.of(ResponseDone)) == 1


def test_an_answer_that_was_heard_to_its_end_is_not_cut() -> None:
    bench = Bench()
    response = bench.speak(ms=1000)
    bench.dialogue.interrupt(T + 5.0)
    assert bench.of(ItemTruncated) == []
    assert bench.plugin.of(Interrupted) == [Interrupted(response.id, "one two three")]


def test_a_deleted_item_is_not_cut() -> None:
    bench = Bench()
    response = bench.speak()
    bench.history.delete(response.messages[0].id)
    bench.dialogue.interrupt(T + 1.0)
    assert bench.of(ItemTruncated) == []
    again = bench.speak()
    bench.say(EndResponse(again.id))
    bench.read()
    bench.history.delete(again.messages[0].id)
    bench.dialogue.interrupt(T + 1.0)
    assert bench.of(ItemTruncated) == []


def test_where_nobody_speaks_there_is_nothing_to_interrupt() -> None:
    bench = Bench()
    bench.dialogue.interrupt(T)
    assert bench.read() == []
    assert bench.plugin.seen == []


def test_a_cancel_by_the_client_leaves_the_cut_to_the_client() -> None:
    bench = Bench()
    response = bench.speak()
    bench.dialogue.stop(response, "cancelled", CLIENT_CANCELLED, T + 2.0)
    assert bench.of(ItemTruncated) == []
    assert bench.history.view()[0].text == "one two"


def test_a_written_answer_was_read_as_far_as_it_was_delivered() -> None:
    bench = Bench()
    response = bench.request(output_modalities=("text",))
    bench.say(SayText(response.id, "one"))
    bench.read()
    bench.say(SayText(response.id, " two"))
    bench.dialogue.stop(response, "cancelled", CLIENT_CANCELLED, T)
    assert bench.plugin.of(Interrupted) == [Interrupted(response.id, "one")]
    assert bench.history.view()[0].text == "one"


def test_the_plugin_is_told_when_an_answer_that_is_over_was_heard_differently() -> None:
    bench = Bench()
    response = bench.speak()
    entry = bench.history.get(response.messages[0].id)
    bench.dialogue.heard_changed(entry, T)
    assert bench.plugin.of(Interrupted) == []
    bench.say(EndResponse(response.id))
    bench.read()
    assert entry.spoken is not None
    entry.spoken.cut_sample = 2000 * MS
    bench.dialogue.heard_changed(entry, T)
    assert bench.plugin.of(Interrupted) == [Interrupted(response.id, "one two")]
    bench.dialogue.heard_changed(bench.history.add(user("x")), T)
    assert len(bench.plugin.of(Interrupted)) == 1


def test_the_plugin_is_told_where_the_client_stopped_playing() -> None:
    bench = Bench()
    response = bench.speak()
    bench.say(EndResponse(response.id))
    bench.read()
    entry = bench.history.get(response.messages[0].id)
    bench.speaking.playback.truncate(entry.item.id, 500, T)
    bench.dialogue.heard_changed(entry, T)
    (told,) = bench.plugin.of(Interrupted)
    assert told.cut_sample == 500 * MS


# The conversation


def test_a_plugin_that_prompts_from_text_knows_the_conversation_when_it_has_changed() -> None:
    bench = Bench(Capabilities(reads_transcripts=True))
    bench.dialogue.follow_up(T)
    assert bench.plugin.of(ConversationChanged) == []
    bench.history.add(user("a"))
    bench.dialogue.follow_up(T)
    bench.dialogue.tell_conversation(T)
    (changed,) = bench.plugin.of(ConversationChanged)
    assert changed.conversation == (ItemView(id="a", role="user", text="hello"),)


def test_a_plugin_that_does_not_is_not_told() -> None:
    bench = Bench()
    bench.history.add(user("a"))
    bench.dialogue.follow_up(T)
    assert bench.plugin.seen == []


def test_the_end_and_the_cut_of_an_answer_change_the_conversation() -> None:
    bench = Bench(Capabilities(reads_transcripts=True))
    response = bench.speak()
    bench.dialogue.interrupt(T + 2.0)
    bench.dialogue.follow_up(T)
    texts = [[item.text for item in c.conversation] for c in bench.plugin.of(ConversationChanged)]
    assert texts[-1] == ["one two"]
    assert bench.plugin.of(Interrupted) == [Interrupted(response.id, "one two")]


# Lost words


def test_only_answers_that_wait_for_lost_words_fail_with_them() -> None:
    bench = Bench(Capabilities(reads_transcripts=True))
    beside = bench.request(conversation="none", input=(user("", "x"),))
    bench.history.add(MessageItem(id="a", role="user", content=(InputAudio(),)))
    waiting = bench.request()
    bench.dialogue.fail_waiting("b", "stage_failed", T)
    assert bench.speaking.all() == [beside, waiting]
    bench.dialogue.fail_waiting("a", "stage_failed", T)
    assert bench.speaking.all() == [beside]


def test_an_answer_to_words_that_are_lost_fails_without_asking_the_plugin() -> None:
    bench = Bench(Capabilities(reads_transcripts=True))
    bench.history.add(MessageItem(id="a", role="user", content=(InputAudio(),)))
    bench.history.lose_user_transcript("a", "stage_failed")
    bench.dialogue.request(bench.config(), T)
    (done,) = bench.of(ResponseDone)
    assert done.response.status == "failed"
    assert bench.plugin.of(ResponseRequested) == []
    bench.request(conversation="none", input=(user("", "x"),))
    assert len(bench.plugin.of(ResponseRequested)) == 1
