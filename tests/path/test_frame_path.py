"""One frame through every station, in order, and an answer back."""

from __future__ import annotations

from collections.abc import Sequence

from duologue.duplex_plugins.scripted import ScriptedPlugin, ScriptedSettings
from duologue.engines.payloads import AudioChunk, Payload, SpeakText, SpeechMark, TextDelta
from duologue.protocol.commands import CommitAudio, CreateResponse
from duologue.protocol.events import AudioCommitted, ItemAdded, ItemDone, RateLimitsUpdated
from duologue.protocol.items import MessageItem, OutputAudio
from duologue.protocol.response_events import (
    AudioDelta,
    AudioDone,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    ContentPartAdded,
    ContentPartDone,
    OutputItemAdded,
    OutputItemDone,
    ResponseCreated,
    ResponseDone,
)
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine

LINE = "Hello there."


def speak(payload: Payload) -> Sequence[Payload]:
    assert isinstance(payload, SpeakText)
    tone = b"\x10\x00" * 2400
    return (
        TextDelta(payload.text),
        AudioChunk(tone, 24000, 0),
        AudioChunk(tone, 24000, 2400),
        SpeechMark(payload.text_end, 4800),
    )


def make_call() -> FakeCall:
    engine = FakeEngine({"scripted": speak}, pipelines=("vad",))
    return FakeCall(ScriptedPlugin(ScriptedSettings(lines=(LINE,))), engine)


def test_a_spoken_turn_is_answered_in_the_order_that_clients_need() -> None:
    call = make_call()
    call.hush(4)
    call.say(20)
    call.hush(20)
    (request,) = [r for r in call.engine.submitted if r.pipeline == "scripted"]
    assert request.fence.lane == call.client.last(ResponseCreated).response.id
    call.engine.deliver()
    kinds = [type(event) for event in call.client.events]
    assert kinds[kinds.index(AudioCommitted) :] == [
        AudioCommitted,
        ItemAdded,
        ItemDone,
        ResponseCreated,
        OutputItemAdded,
        ItemAdded,
        ContentPartAdded,
        AudioTranscriptDelta,
        AudioDelta,
        AudioDelta,
        AudioDone,
        AudioTranscriptDone,
        ContentPartDone,
        ItemDone,
        OutputItemDone,
        ResponseDone,
        RateLimitsUpdated,
    ]
    audio = b"".join(delta.delta for delta in call.client.of(AudioDelta))
    assert audio == b"\x10\x00" * 4800
    (item,) = call.client.last(ResponseDone).response.output
    assert isinstance(item, MessageItem)
    assert item.content == (OutputAudio(transcript=LINE),)


def test_a_turn_committed_by_hand_reaches_the_same_stations() -> None:
    call = make_call()
    call.say(20)
    call.send(CommitAudio(), CreateResponse())
    call.engine.deliver()
    assert call.client.last(ResponseDone).response.status == "completed"
    assert len(call.engine.of("scripted")) == 0
