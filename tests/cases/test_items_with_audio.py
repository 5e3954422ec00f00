"""Items that the client writes itself: speech in them, where they go, and what they may not be."""

from __future__ import annotations

import pytest

from duologue.duplex_plugins.contract import Capabilities, TranscriptKind, UserTranscript
from duologue.engines.payloads import AudioChunk
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.commands import CreateItem, CreateResponse, RetrieveItem
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import (
    ErrorEvent,
    ItemAdded,
    ItemDone,
    ItemRetrieved,
    TranscriptionCompleted,
    TranscriptionFailed,
)
from duologue.protocol.items import ContentPart, InputAudio, InputImage, InputText, MessageItem
from duologue.sessions.settings import SessionSettings
from tests.cases.talk import BY_HAND, READS, Talk, listening, pcm, transcription
from tests.fakes.plugin import STAGE

PICTURE = InputImage(image_url="data:image/png;base64,AA==")


def message(*content: ContentPart, item_id: str = "", after: str | None = None) -> CreateItem:
    item = MessageItem(id=item_id, role="user", content=content)
    return CreateItem(event_id="e1", item=item, previous_item_id=after)


def spoken(ms: int = 600) -> InputAudio:
    return InputAudio(audio=pcm(ms))


def test_speech_in_an_item_is_transcribed_before_an_answer_that_needs_it() -> None:
    talk = Talk(BY_HAND, READS)
    talk.send(transcription(), message(spoken(2600), item_id="mine"), CreateResponse())
    (added,), (done,) = talk.client.of(ItemAdded), talk.client.of(ItemDone)
    assert added.item == done.item
    assert added.item.content == (InputAudio(),)  # type: ignore[union-attr]
    assert talk.plugin.prompts == [[("user", None)]]
    talk.clock.advance(0.1)
    recogniser = talk.engine.only("asr")
    heard = [chunk for chunk in recogniser.inputs if isinstance(chunk, AudioChunk)]
    assert sum(len(chunk.pcm) for chunk in heard) == 2600 * 32
    assert max(len(chunk.pcm) for chunk in heard) <= 32_100
    talk.transcribe("what is this")
    (completed,) = talk.client.of(TranscriptionCompleted)
    assert (completed.item_id, completed.content_index) == ("mine", 0)
    assert completed.usage.seconds == pytest.approx(2.6)  # type: ignore[union-attr]
    told = talk.plugin.of(UserTranscript)[-1]
    assert told == UserTranscript("mine", "what is this", TranscriptKind.FINAL)
    talk.send(RetrieveItem(item_id="mine"))
    shown = talk.client.last(ItemRetrieved).item
    assert shown.content == (InputAudio(transcript="what is this"),)  # type: ignore[union-attr]
    talk.finish()
    talk.close()


def test_text_and_speech_in_one_item_are_one_message() -> None:
    talk = Talk(BY_HAND, READS)
    talk.send(transcription(), message(InputText(text="Translate:"), spoken(), item_id="mine"))
    talk.clock.advance(0.1)
    talk.transcribe("guten Tag")
    assert talk.client.last(TranscriptionCompleted).content_index == 1
    assert talk.plugin.of(UserTranscript)[-1].text == "Translate: guten Tag"
    talk.send(CreateResponse())
    assert talk.plugin.prompts == [[("user", "Translate: guten Tag")]]
    talk.finish()
    talk.close()


def test_a_transcript_that_comes_with_it_is_believed() -> None:
    talk = Talk(BY_HAND, READS)
    talk.send(message(InputAudio(audio=pcm(600), transcript="hello")), CreateResponse())
    assert talk.engine.of("asr") == []
    assert talk.plugin.prompts == [[("user", "hello")]]
    talk.finish()
    talk.close()


def test_it_is_read_in_the_input_format_of_the_session() -> None:
    talk = Talk(BY_HAND, READS)
    talk.send(listening(format=FormatPatch(type="audio/pcmu")))
    talk.send(message(InputAudio(audio=b"\xff" * 8000)))
    talk.clock.advance(0.1)
    heard = [each for each in talk.engine.only("asr").inputs if isinstance(each, AudioChunk)]
    assert sum(len(chunk.pcm) for chunk in heard) == 32_000
    talk.close()


@pytest.mark.parametrize("sliced", [False, True])
def test_a_recogniser_that_fails_fails_the_answer_that_waits(sliced: bool) -> None:
    talk = Talk(BY_HAND, READS)
    talk.send(transcription(), message(spoken(5000 if sliced else 500)), CreateResponse())
    # In the middle of it, or when all of it is there.
    talk.clock.advance(0.01 if sliced else 0.1)
    talk.engine.fail(talk.engine.only("asr").request.id, "replica_lost")
    assert len(talk.client.of(TranscriptionFailed)) == 1
    assert talk.done() == [("failed", "replica_lost")]
    assert talk.metrics.listening_failed["transcriber"].value == 1
    talk.probe()
    talk.close()


def test_a_recogniser_that_says_nothing_is_given_up() -> None:
    talk = Talk(BY_HAND, READS, settings=SessionSettings(response_timeout_s=5))
    talk.send(transcription(), message(spoken()))
    talk.clock.advance(5.1)
    assert talk.client.last(TranscriptionFailed).error.code == "stage_timeout"
    talk.close()


@pytest.mark.parametrize(
    ("content", "code", "param"),
    [
        ((spoken(), spoken()), "unsupported", "item.content[1]"),
        ((InputAudio(),), "missing_required_parameter", "item.content[0].audio"),
        ((InputAudio(audio=b""),), "missing_required_parameter", "item.content[0].audio"),
        ((spoken(), InputAudio()), "unsupported", "item.content[1]"),
        ((InputText(text="look"), PICTURE), "unsupported", "item.content[1]"),
        ((spoken(2100),), "input_audio_buffer_full", "item.content[0].audio"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_name_and_leaves_nothing_behind(
    content: tuple[ContentPart, ...], code: str, param: str
) -> None:
    talk = Talk(BY_HAND, READS, settings=SessionSettings(input_buffer_ms=2000))
    talk.send(message(*content))
    error = talk.client.error().error
    assert (error.code, error.param, error.event_id) == (code, param, "e1")
    assert len(talk.machine.history) == 0
    talk.clock.advance(1)
    assert talk.engine.of("asr") == []
    talk.probe()
    talk.close()


def test_without_a_recogniser_speech_in_an_item_is_refused() -> None:
    talk = Talk((STAGE,))
    talk.send(message(spoken()))
    error = talk.client.error().error
    assert (error.code, error.param) == ("unsupported", "item.content[0].transcript")
    talk.close()


def test_a_model_that_sees_gets_pictures() -> None:
    talk = Talk(BY_HAND, Capabilities(reads_transcripts=True, sees=True))
    talk.send(message(InputText(text="look"), PICTURE))
    assert talk.client.of(ErrorEvent) == []
    assert talk.machine.history.view()[0].images == (PICTURE.image_url,)
    talk.close()


# Where items go


def order(talk: Talk) -> list[str]:
    return [view.id for view in talk.machine.history.view()]


def test_items_keep_their_ids_and_go_where_the_client_says() -> None:
    talk = Talk(BY_HAND, READS)
    text = InputText(text="x")
    talk.send(message(text, item_id="b"), message(text, item_id="c", after="b"))
    talk.send(message(text, item_id="a", after="root"), message(spoken(), item_id="d", after="a"))
    assert order(talk) == ["a", "d", "b", "c"]
    before = [event.previous_item_id for event in talk.client.of(ItemAdded)]
    assert before == [None, "b", None, "a"]
    assert [event.previous_item_id for event in talk.client.of(ItemDone)] == before
    talk.close()


@pytest.mark.parametrize(
    ("command", "code", "param"),
    [
        (message(spoken(), item_id="a"), ErrorCode.ITEM_DUPLICATE_ID, "item.id"),
        (message(spoken(), after="nobody"), ErrorCode.ITEM_UNKNOWN_PREVIOUS, "previous_item_id"),
    ],
)
def test_an_item_that_has_no_place_is_not_listened_to_either(
    command: CreateItem, code: str, param: str
) -> None:
    talk = Talk(BY_HAND, READS)
    talk.send(message(InputText(text="x"), item_id="a"), command)
    error = talk.client.error().error
    assert (error.code, error.param) == (code, param)
    talk.clock.advance(1)
    assert talk.engine.of("asr") == []
    assert order(talk) == ["a"]
    talk.close()
