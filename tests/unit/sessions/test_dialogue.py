"""The plugin's side of the conversation: from a request for an answer to its end."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TypeVar

import pytest

from duologue.core.errors import ClientError, LimitExceeded, PluginError, ProtocolError
from duologue.core.ids import id_maker
from duologue.duplex_plugins.contract import (
    BeginResponse,
    CancelStage,
    Capabilities,
    ConversationChanged,
    EndResponse,
    Interrupted,
    ItemView,
    PluginConfig,
    PluginEffect,
    ResponseOutcome,
    ResponseRequested,
    SayAudio,
    SayText,
    StartStage,
    Tick,
)
from duologue.engines.payloads import SpeechMark, TokenUsage
from duologue.protocol.commands import ResponseParams
from duologue.protocol.events import Event, ItemTruncated
from duologue.protocol.items import (
    FunctionCallItem,
    InputAudio,
    InputText,
    ItemReference,
    MessageItem,
)
from duologue.protocol.response_config import ResponseConfig, response_config
from duologue.protocol.response_events import ResponseDone
from duologue.protocol.session_config import SessionConfig
from duologue.sessions.dialogue import CLIENT_CANCELLED, TURN_DETECTED, Dialogue
from duologue.sessions.effects import CancelRequest, GrantCredit, SubmitRequest
from duologue.sessions.history import History
from duologue.sessions.output_buffer import OutputLimits
from duologue.sessions.plugin_host import PluginHost
from duologue.sessions.response import Response
from duologue.sessions.speaking import Pace, Speaking
from duologue.sessions.streams import Owner, Streams
from tests.fakes.plugin import FakePlugin

RATE_HZ = 24000
MS = RATE_HZ // 1000
T = 100.0
E = TypeVar("E", bound=Event)


def pcm(ms: int) -> bytes:
    return b"\x01\x00" * (ms * MS)


def user(item_id: str, text: str = "hello") -> MessageItem:
    return MessageItem(id=item_id, role="user", content=(InputText(text=text),))


class Bench:
    """A dialogue with a plugin that says what a test wants."""

    def __init__(
        self, capabilities: Capabilities | None = None, limits: OutputLimits | None = None
    ) -> None:
        new_id = id_maker(random.Random(0))
        self.plugin = FakePlugin(capabilities, answers=False)
        self.history = History(100)
        self.streams = Streams("s")
        self.speaking = Speaking(self.history, limits or OutputLimits(), Pace(), RATE_HZ, new_id)
        self.dialogue = Dialogue(
            PluginHost(self.plugin, PluginConfig(), self.streams),
            self.speaking,
            self.history,
            self.streams,
            new_id,
            response_config(SessionConfig(instructions="own")),
            max_out_of_band=2,
        )
        self.events: list[Event] = []

    def config(self, **params: object) -> ResponseConfig:
        return response_config(SessionConfig(), ResponseParams(**params))  # type: ignore[arg-type]

    def request(self, **params: object) -> Response:
        """Ask for an answer; returns it."""
        self.dialogue.request(self.config(**params), T)
        return self.speaking.all()[-1]

    def say(self, *effects: PluginEffect, now: float = T) -> None:
        self.plugin.then(*effects)
        self.dialogue.tell(Tick(1), now)

    def read(self, now: float = T) -> list[Event]:
        """Take what may be sent now."""
        self.speaking.let_pass(now)
        events = self.speaking.pull(now, 1 << 30)
        self.events += events
        self.dialogue.settle(now)
        return events

    def of(self, kind: type[E]) -> list[E]:
        self.read()
        return [event for event in self.events if isinstance(event, kind)]

    def speak(self, ms: int = 3000, text: str = "one two three") -> Response:
        """Have the plugin say something, and the client read what it may."""
        response = self.request()
        self.say(
            SayText(response.id, text),
            SayAudio(response.id, pcm(ms), (SpeechMark(len(text), ms * MS),)),
        )
        self.read()
        return response


# Requests


def test_a_request_reaches_the_plugin_with_conversation_and_configuration() -> None:
    bench = Bench()
    bench.history.add(user("a"))
    response = bench.request(instructions="Sing.")
    (requested,) = bench.plugin.of(ResponseRequested)
    assert requested.response_id == response.id
    assert requested.conversation == (ItemView(id="a", role="user", text="hello"),)
    assert requested.config.instructions == "Sing."


def test_a_conversation_has_one_answer_at_a_time() -> None:
    bench = Bench()
    active = bench.request()
    with pytest.raises(ProtocolError, match=f"active response: {active.id}") as refusal:
        bench.request()
    assert refusal.value.code == "conversation_already_has_active_response"
    assert len(bench.plugin.of(ResponseRequested)) == 1


def test_answers_out_of_band_run_beside_it_within_a_limit() -> None:
    bench = Bench()
    bench.request()
    for _ in range(2):
        bench.request(conversation="none")
    with pytest.raises(LimitExceeded, match="2 out-of-band responses run, the limit is 2"):
        bench.request(conversation="none")


def test_an_answer_may_be_to_something_else_than_the_conversation() -> None:
    bench = Bench()
    bench.history.add(user("a", "in the conversation"))
    bench.history.add(user("b", "left out"))
    bench.request(conversation="none", input=(ItemReference(id="a"), user("", "beside it")))
    assert bench.plugin.prompts == [[("user", "in the conversation"), ("user", "beside it")]]


@pytest.mark.parametrize(
    ("item", "code", "param"),
    [
        (ItemReference(id="x"), "item_reference_invalid_item_id", "item_id"),
        (FunctionCallItem(name="f"), "unsupported", "response.input[1]"),
        (
            MessageItem(role="user", content=(InputAudio(),)),
            "unsupported",
            "response.input[1].content[0].transcript",
        ),
    ],
)
def test_an_input_that_cannot_be_used_is_refused_and_nothing_begins(
    item: object, code: str, param: str
) -> None:
    bench = Bench()
    with pytest.raises(ClientError) as refusal:
        bench.request(input=(user("", "fine"), item))
    assert (refusal.value.code, refusal.value.param) == (code, param)
    assert bench.speaking.all() == []
    assert bench.of(ResponseDone) == []


def test_a_committed_turn_is_answered_as_soon_as_nobody_else_is_being_answered() -> None:
    bench = Bench()
    active = bench.request()
    bench.dialogue.answer_when_free()
    bench.dialogue.settle(T)
    assert bench.speaking.all() == [active]
    bench.say(EndResponse(active.id))
    bench.read()
    (answer,) = bench.speaking.all()
    assert answer.config.instructions == "own"
    bench.dialogue.settle(T)
    assert bench.speaking.all() == [answer]


def test_a_model_that_decides_by_itself_is_not_asked() -> None:
    bench = Bench(Capabilities(decides_turns=True))
    bench.dialogue.answer_when_free()
    bench.dialogue.settle(T)
    assert bench.speaking.all() == []


def test_a_model_may_begin_by_itself_where_nobody_is_being_answered() -> None:
    bench = Bench()
    bench.say(BeginResponse(), BeginResponse())
    (requested,) = bench.plugin.of(ResponseRequested)
    assert requested.config.instructions == "own"
    bench.say(BeginResponse())
    assert len(bench.plugin.of(ResponseRequested)) == 1


# The plugin speaks


def test_an_answer_ends_as_the_plugin_says() -> None:
    bench = Bench()
    response = bench.request()
    bench.say(
        SayText(response.id, "Hi."),
        EndResponse(response.id, ResponseOutcome.INCOMPLETE, "max_output_tokens", TokenUsage(1, 2)),
    )
    (done,) = bench.of(ResponseDone)
    assert (done.response.status, done.response.usage.total_tokens) == ("incomplete", 3)  # type: ignore[union-attr]


def test_the_end_of_an_answer_ends_its_work() -> None:
    bench = Bench()
    response = bench.request()
    bench.say(StartStage(key="tts", pipeline="tts", response_id=response.id))
    bench.streams.take_effects()
    bench.say(EndResponse(response.id))
    assert list(bench.streams.take_effects()) == [CancelRequest("s.1")]
    bench.read()
    assert not bench.streams.epochs.is_open(response.lane)


@pytest.mark.parametrize("name", ["unknown", "draining"])
def test_speaking_in_an_answer_that_is_over_breaks_the_contract(name: str) -> None:
    bench = Bench()
    response = bench.request()
    bench.say(SayText(response.id, "Hi."), EndResponse(response.id))
    wrong = response.id if name == "draining" else "unknown"
    with pytest.raises(PluginError, match=f"speaks in '{wrong}', which is over"):
        bench.say(SayText(wrong, "more"))


def test_an_answer_that_overflows_fails_and_the_rest_of_the_step_counts() -> None:
    bench = Bench(limits=OutputLimits(audio_ms=1000))
    response = bench.request()
    bench.say(StartStage(key="tts", pipeline="tts", response_id=response.id))
    bench.streams.take_effects()
    bench.say(
        SayAudio(response.id, pcm(1001)),
        SayText(response.id, "more"),
        EndResponse(response.id),
        StartStage(key="standing", pipeline="llm"),
    )
    (done,) = bench.of(ResponseDone)
    assert done.response.status == "failed"
    assert done.response.status_details.reason == "output_overflow"  # type: ignore[union-attr]
    assert [i.response_id for i in bench.plugin.of(Interrupted)] == [response.id]
    assert bench.streams.find(Owner.PLUGIN, "standing") is not None
    assert bench.streams.find(Owner.PLUGIN, "tts") is None
    bench.say(CancelStage("standing"))


def test_of_an_answer_that_overflowed_before_it_was_sent_nothing_was_heard() -> None:
    bench = Bench(limits=OutputLimits(audio_ms=2000))
    response = bench.request()
    bench.say(SayText(response.id, "one two"), SayAudio(response.id, pcm(1000)))
    bench.say(SayAudio(response.id, pcm(1001)))
    entry = bench.history.get(response.item_id)
    assert entry.interrupted
    assert bench.plugin.of(Interrupted) == [Interrupted(response.id, "")]


# Being stopped


def test_an_interruption_cancels_the_answer_and_its_work_and_tells_what_was_heard() -> None:
    bench = Bench()
    response = bench.request()
    bench.say(
        StartStage(key="tts", pipeline="tts", response_id=response.id),
        SayText(response.id, "one two three"),
        SayAudio(response.id, pcm(3000), (SpeechMark(13, 3000 * MS),)),
    )
    bench.read()
    bench.dialogue.interrupt(T + 2.0)
    assert CancelRequest("s.1") in list(bench.streams.take_effects())
    assert bench.plugin.of(Interrupted) == [Interrupted(response.id, "one two")]
    (done,) = bench.of(ResponseDone)
    assert done.response.status_details.reason == TURN_DETECTED  # type: ignore[union-attr]
    (cut,) = bench.of(ItemTruncated)
    assert (cut.item_id, cut.audio_end_ms) == (response.item_id, 2000)
    assert bench.events.index(done) < bench.events.index(cut)
    assert bench.history.view()[0] == ItemView(
        id=response.item_id, role="assistant", text="one two", interrupted=True
    )


def test_late_output_of_an_interrupted_answer_goes_nowhere() -> None:
    bench = Bench()
    response = bench.request()
    bench.say(StartStage(key="tts", pipeline="tts", response_id=response.id))
    (submitted,) = bench.streams.take_effects()
    assert isinstance(submitted, SubmitRequest)
    bench.dialogue.interrupt(T)
    assert not bench.streams.epochs.is_current(submitted.request.fence)


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
    bench.history.delete(response.item_id)
    bench.dialogue.interrupt(T + 1.0)
    assert bench.of(ItemTruncated) == []
    again = bench.speak()
    bench.say(EndResponse(again.id))
    bench.read()
    bench.history.delete(again.item_id)
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
    entry = bench.history.get(response.item_id)
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


# The conversation


def test_a_plugin_that_prompts_from_text_knows_the_conversation_when_it_has_changed() -> None:
    bench = Bench(Capabilities(reads_transcripts=True))
    bench.dialogue.settle(T)
    assert bench.plugin.of(ConversationChanged) == []
    bench.history.add(user("a"))
    bench.dialogue.settle(T)
    bench.dialogue.settle(T)
    (changed,) = bench.plugin.of(ConversationChanged)
    assert changed.conversation == (ItemView(id="a", role="user", text="hello"),)


def test_a_plugin_that_does_not_is_not_told() -> None:
    bench = Bench()
    bench.history.add(user("a"))
    bench.dialogue.settle(T)
    assert bench.plugin.seen == []


def test_the_end_and_the_cut_of_an_answer_change_the_conversation() -> None:
    bench = Bench(Capabilities(reads_transcripts=True))
    response = bench.speak()
    bench.dialogue.interrupt(T + 2.0)
    bench.dialogue.settle(T)
    texts = [[item.text for item in c.conversation] for c in bench.plugin.of(ConversationChanged)]
    assert texts[-1] == ["one two"]
    assert bench.plugin.of(Interrupted) == [Interrupted(response.id, "one two")]


# Silence


def test_a_model_that_decides_by_itself_may_be_silent_as_long_as_it_likes() -> None:
    bench = Bench(Capabilities(decides_turns=True))
    bench.say(BeginResponse())
    assert bench.dialogue.silent_since() is None


def test_an_answer_from_which_nothing_comes_fails_in_the_end() -> None:
    bench = Bench()
    response = bench.request()
    assert bench.dialogue.silent_since() == T
    bench.dialogue.fail_silent(30.0, T + 29.9)
    assert bench.speaking.all() == [response]
    bench.dialogue.fail_silent(30.0, T + 30.0)
    (done,) = bench.of(ResponseDone)
    assert done.response.status_details.reason == "stage_timeout"  # type: ignore[union-attr]


def test_an_answer_is_not_silent_while_some_of_it_still_waits() -> None:
    bench = Bench()
    response = bench.request()
    bench.say(SayAudio(response.id, pcm(5000)), now=T + 10)
    bench.read(T + 10)
    assert bench.dialogue.silent_since() is None
    bench.read(T + 13)
    assert bench.dialogue.silent_since() == T + 10


def test_the_silence_of_the_longest_silent_answer_counts() -> None:
    bench = Bench()
    bench.request()
    assert bench.dialogue.silent_since() == T
    bench.dialogue.request(bench.config(conversation="none"), T + 5)
    bench.say(SayText(bench.speaking.all()[0].id, "x"), now=T + 8)
    bench.read()
    assert bench.dialogue.silent_since() == T + 5


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


# Credit


def test_credit_is_granted_for_speech_that_was_sent_to_the_stage_that_speaks() -> None:
    bench = Bench()
    response = bench.request()
    bench.say(
        StartStage(key="llm", pipeline="llm", response_id=response.id),
        StartStage(key="tts", pipeline="tts", response_id=response.id, credit=1000),
        SayAudio(response.id, pcm(300)),
    )
    stream = bench.streams.find(Owner.PLUGIN, "tts")
    assert stream is not None
    stream.speaks = True
    bench.streams.take_effects()
    bench.read()
    assert list(bench.streams.take_effects()) == [GrantCredit("s.2", 300)]
    bench.dialogue.settle(T)
    assert bench.streams.take_effects() == ()


def test_nothing_is_granted_for_less_than_a_millisecond_or_after_the_end() -> None:
    bench = Bench()
    response = bench.request()
    bench.say(
        StartStage(key="tts", pipeline="tts", response_id=response.id, credit=1000),
        SayAudio(response.id, b"\x00\x00" * 20),
    )
    stream = bench.streams.find(Owner.PLUGIN, "tts")
    assert stream is not None
    stream.speaks = True
    bench.streams.take_effects()
    bench.read()
    assert bench.streams.take_effects() == ()
    bench.say(SayAudio(response.id, pcm(100)), EndResponse(response.id))
    bench.read()
    assert list(bench.streams.take_effects()) == [CancelRequest("s.1")]


def test_what_the_model_begins_by_itself_follows_the_sessions_configuration() -> None:
    bench = Bench()
    bench.dialogue.own_config = replace(bench.dialogue.own_config, instructions="new")
    bench.say(BeginResponse())
    assert bench.plugin.of(ResponseRequested)[0].config.instructions == "new"
