"""The plugin's side of the conversation: from a request for an answer to its end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.core.errors import ClientError, LimitExceeded, PluginError, ProtocolError
from duologue.duplex_plugins.contract import (
    BeginResponse,
    Capabilities,
    EndResponse,
    Interrupted,
    ItemView,
    ResponseOutcome,
    ResponseRequested,
    SayAudio,
    SayText,
    StartRequest,
    StopRequest,
)
from duologue.engines.payloads import TokenUsage
from duologue.protocol.items import (
    FunctionCallOutputItem,
    InputAudio,
    InputImage,
    ItemReference,
    MessageItem,
)
from duologue.protocol.response_events import ResponseDone
from duologue.sessions.effects import CancelRequest, GrantCredit
from duologue.sessions.requests import Asker
from duologue.sessions.speaking.output_buffer import OutputLimits
from tests.unit.sessions.dialogue_bench import Bench, T, pcm, user

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
        (ItemReference(id="x"), "item_reference_invalid_item_id", "response.input[1].id"),
        (
            FunctionCallOutputItem(call_id="c", output="1"),
            "tool_call_not_found",
            "response.input[1].call_id",
        ),
        (
            MessageItem(role="user", content=(InputImage(image_url="data:image/png;base64,"),)),
            "unsupported",
            "response.input[1].content[0]",
        ),
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
    bench.dialogue.follow_up(T)
    assert bench.speaking.all() == [active]
    bench.say(EndResponse(active.id))
    bench.read()
    (answer,) = bench.speaking.all()
    assert answer.config.instructions == "own"
    bench.dialogue.follow_up(T)
    assert bench.speaking.all() == [answer]


def test_a_model_that_decides_by_itself_is_not_asked() -> None:
    bench = Bench(Capabilities(decides_turns=True))
    bench.dialogue.answer_when_free()
    bench.dialogue.follow_up(T)
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
    bench.say(StartRequest(key="tts", pipeline="tts", response_id=response.id))
    bench.requests.take_effects()
    bench.say(EndResponse(response.id))
    assert list(bench.requests.take_effects()) == [CancelRequest("s.1")]
    bench.read()
    assert not bench.requests.epochs.is_open(response.lane)


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
    bench.say(StartRequest(key="tts", pipeline="tts", response_id=response.id))
    bench.requests.take_effects()
    bench.say(
        SayAudio(response.id, pcm(1001)),
        SayText(response.id, "more"),
        EndResponse(response.id),
        StartRequest(key="standing", pipeline="llm"),
    )
    (done,) = bench.of(ResponseDone)
    assert done.response.status == "failed"
    assert done.response.status_details.reason == "output_overflow"  # type: ignore[union-attr]
    assert [i.response_id for i in bench.plugin.of(Interrupted)] == [response.id]
    assert bench.requests.find(Asker.PLUGIN, "standing") is not None
    assert bench.requests.find(Asker.PLUGIN, "tts") is None
    bench.say(StopRequest("standing"))


def test_of_an_answer_that_overflowed_before_it_was_sent_nothing_was_heard() -> None:
    bench = Bench(limits=OutputLimits(audio_ms=2000))
    response = bench.request()
    bench.say(SayText(response.id, "one two"), SayAudio(response.id, pcm(1000)))
    bench.say(SayAudio(response.id, pcm(1001)))
    entry = bench.history.get(response.messages[0].id)
    assert entry.interrupted
    assert bench.plugin.of(Interrupted) == [Interrupted(response.id, "")]


# Credit


def test_credit_is_granted_for_speech_that_was_sent_to_the_request_that_speaks() -> None:
    bench = Bench()
    response = bench.request()
    bench.say(
        StartRequest(key="llm", pipeline="llm", response_id=response.id),
        StartRequest(key="tts", pipeline="tts", response_id=response.id, credit=1000),
        SayAudio(response.id, pcm(300)),
    )
    request = bench.requests.find(Asker.PLUGIN, "tts")
    assert request is not None
    request.speaks = True
    bench.requests.take_effects()
    bench.read()
    assert list(bench.requests.take_effects()) == [GrantCredit("s.2", 300)]
    bench.dialogue.follow_up(T)
    assert bench.requests.take_effects() == ()


def test_nothing_is_granted_for_less_than_a_millisecond_or_after_the_end() -> None:
    bench = Bench()
    response = bench.request()
    bench.say(
        StartRequest(key="tts", pipeline="tts", response_id=response.id, credit=1000),
        SayAudio(response.id, b"\x00\x00" * 20),
    )
    request = bench.requests.find(Asker.PLUGIN, "tts")
    assert request is not None
    request.speaks = True
    bench.requests.take_effects()
    bench.read()
    assert bench.requests.take_effects() == ()
    bench.say(SayAudio(response.id, pcm(100)), EndResponse(response.id))
    bench.read()
    assert list(bench.requests.take_effects()) == [CancelRequest("s.1")]


@given(
    st.sampled_from([8000, 11025, 16000, 22050, 24000, 44100, 48000]),
    st.lists(st.integers(1, 3000), min_size=1, max_size=40),
)
@settings(max_examples=100)
def test_whatever_the_pieces_what_is_granted_is_what_was_sent(
    rate_hz: int, pieces: list[int]
) -> None:
    bench = Bench(rate_hz=rate_hz)
    response = bench.request()
    bench.say(StartRequest(key="tts", pipeline="tts", response_id=response.id, credit=1000))
    request = bench.requests.find(Asker.PLUGIN, "tts")
    assert request is not None
    request.speaks = True
    bench.requests.take_effects()
    granted_ms = sent = 0
    for number, samples in enumerate(pieces):
        bench.say(SayAudio(response.id, bytes(samples * 2)))
        bench.read(T + number)
        sent += samples
        effects = bench.requests.take_effects()
        granted_ms += sum(each.credit for each in effects if isinstance(each, GrantCredit))
        assert 0 <= sent * 1000 - granted_ms * rate_hz < rate_hz  # less than a millisecond


def test_what_the_model_begins_by_itself_follows_the_sessions_configuration() -> None:
    bench = Bench()
    bench.dialogue.own_config = replace(bench.dialogue.own_config, instructions="new")
    bench.say(BeginResponse())
    assert bench.plugin.of(ResponseRequested)[0].config.instructions == "new"
