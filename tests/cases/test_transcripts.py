"""C66: the person's words come after the answer to them."""

from __future__ import annotations

from duologue.engines.payloads import DecodeSpeech, Transcript
from duologue.protocol.commands import CommitAudio, CreateResponse
from duologue.protocol.events import ItemAdded, TranscriptionCompleted
from duologue.protocol.items import MessageItem
from duologue.protocol.response_events import ResponseDone
from tests.cases.talk import Talk, speech, transcription


def test_c66_a_late_transcript_belongs_to_its_turn_and_keeps_the_order() -> None:
    talk = Talk()
    talk.send(transcription(), speech(600), CommitAudio(), CreateResponse())
    talk.answer("quick answer", 500)
    talk.finish()
    talk.clock.advance(2)
    assert talk.done() == [("completed", None)]
    talk.clock.advance(2)
    talk.transcribe("slow question")
    user, assistant = (event.item for event in talk.client.of(ItemAdded))
    assert isinstance(user, MessageItem)
    assert isinstance(assistant, MessageItem)
    assert (user.role, assistant.role) == ("user", "assistant")
    (completed,) = talk.client.of(TranscriptionCompleted)
    assert (completed.item_id, completed.transcript) == (user.id, "slow question")
    kinds = [type(event) for event in talk.client.events]
    assert kinds.index(ResponseDone) < kinds.index(TranscriptionCompleted)
    said = [(view.id, view.text) for view in talk.machine.history.view()]
    assert said == [(user.id, "slow question"), (assistant.id, "quick answer")]
    talk.close()


def test_c66_two_late_transcripts_find_their_turns_in_any_order() -> None:
    talk = Talk()
    talk.send(transcription(), speech(600), CommitAudio(), speech(600), CommitAudio())
    first, second = talk.engine.of("asr")
    for fake, text in ((second, "two"), (first, "one")):
        asked = fake.inputs[-1]
        assert isinstance(asked, DecodeSpeech)
        talk.engine.output(fake.request.id, Transcript(text, "final", asked.end_sample))
    assert [view.text for view in talk.machine.history.view()] == ["one", "two"]
    texts = [event.transcript for event in talk.client.of(TranscriptionCompleted)]
    assert texts == ["two", "one"]
    talk.close()
