from __future__ import annotations

from duologue.clients.machine import CallMachine
from duologue.clients.playback import Playback
from duologue.clients.transcript import Side
from duologue.protocol.duplex.events import PlaybackPosition, ResyncRequired, SessionSnapshot
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.events import AudioCommitted
from duologue.protocol.items import InputAudio, MessageItem, OutputText
from tests.fakes.call import FakeCall
from tests.fakes.plugin import FakePlugin
from tests.fakes.server import FakeAnswer, transcribed


def test_after_too_long_a_gap_the_conversation_is_taken_as_it_stands() -> None:
    plugin = FakePlugin()
    session = FakeCall(plugin, patch=DuplexPatch()).machine.resource()
    assert isinstance(session, DuplexSessionResource)
    machine = CallMachine(Playback())
    answer = FakeAnswer("a")
    for event in (answer.created(), answer.item_added(), answer.text("one"), answer.audio(100)):
        machine.on_event(event, None, 0.0)
    machine.take(24 * 100, 0.0)
    snapshot = SessionSnapshot(
        session=session,
        items=(
            MessageItem(id=answer.item_id, role="assistant", content=(OutputText(text="one two"),)),
            MessageItem(id="item_q", role="user", content=(InputAudio(transcript="and then?"),)),
        ),
        playback=(PlaybackPosition(item_id=answer.item_id, sent_ms=900, heard_ms=100),),
        active_response_id=None,
        server_event_seq=99,
    )
    gap = ResyncRequired(session_id=session.id, reason="journal_gap", snapshot=snapshot)
    machine.on_event(gap, None, 1.0)
    assert not machine.answering
    assert machine.session == session
    # Places go on counting where the server is.
    assert machine.playback.heard_samples(answer.item_id) == 24 * 900
    lines = {line.item_id: (line.side, line.text) for line in machine.transcript}
    assert lines == {
        answer.item_id: (Side.ASSISTANT, "one two"),
        "item_q": (Side.CALLER, "and then?"),
    }


def test_a_gap_in_the_sound_alone_ends_nothing() -> None:
    session = FakeCall(FakePlugin(), patch=DuplexPatch()).machine.resource()
    assert isinstance(session, DuplexSessionResource)
    machine = CallMachine(Playback())
    answer = FakeAnswer("a")
    machine.on_event(answer.created(), None, 0.0)
    snapshot = SessionSnapshot(
        session=session, items=(), playback=(), active_response_id=None, server_event_seq=9
    )
    gap = ResyncRequired(session_id=session.id, reason="sound_gap", snapshot=snapshot)
    machine.on_event(gap, None, 1.0)
    assert machine.active_response_id == answer.response_id


def test_c66_a_late_transcript_stands_before_the_answer_to_it() -> None:
    machine, answer = CallMachine(Playback()), FakeAnswer("a")
    machine.on_event(AudioCommitted(item_id="item_q", previous_item_id=None), None, 0.0)
    for event in (answer.created(), answer.item_added(), answer.text("An answer.")):
        machine.on_event(event, None, 1.0)
    machine.on_event(answer.done(), None, 2.0)
    machine.on_event(transcribed("item_q", "A question?"), None, 4.0)
    assert [(line.side, line.text) for line in machine.transcript] == [
        (Side.CALLER, "A question?"),
        (Side.ASSISTANT, "An answer."),
    ]
