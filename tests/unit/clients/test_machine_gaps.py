from __future__ import annotations

from duologue.clients.effects import Send
from duologue.clients.machine import CallMachine
from duologue.clients.playback import Playback
from duologue.clients.transcript import Side
from duologue.protocol.commands import TruncateItem
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
    # Nothing more comes of it, so nobody has heard more of it.
    assert machine.playback.heard_samples(answer.item_id) == 24 * 100
    lines = {line.item_id: (line.side, line.text) for line in machine.transcript}
    assert lines == {
        answer.item_id: (Side.ASSISTANT, "one two"),
        "item_q": (Side.CALLER, "and then?"),
    }


def sound_gap(**next_ms: int) -> ResyncRequired:
    session = FakeCall(FakePlugin(), patch=DuplexPatch()).machine.resource()
    assert isinstance(session, DuplexSessionResource)
    snapshot = SessionSnapshot(
        session=session,
        items=(),
        playback=tuple(
            PlaybackPosition(item_id=item_id, sent_ms=sent_ms, heard_ms=0)
            for item_id, sent_ms in next_ms.items()
        ),
        active_response_id=None,
        server_event_seq=9,
    )
    return ResyncRequired(session_id=session.id, reason="sound_gap", snapshot=snapshot)


def test_a_gap_in_the_sound_alone_ends_nothing() -> None:
    machine = CallMachine(Playback())
    answer = FakeAnswer("a")
    machine.on_event(answer.created(), None, 0.0)
    machine.on_event(sound_gap(), None, 1.0)
    assert machine.active_response_id == answer.response_id


def test_after_a_gap_in_the_sound_places_are_those_of_the_server() -> None:
    machine = CallMachine(Playback())
    first, second = FakeAnswer("a"), FakeAnswer("b")
    for event in (first.created(), first.item_added(), first.text("one two "), first.audio(300)):
        machine.on_event(event, None, 0.0)
    machine.take(24 * 100, 0.0)
    machine.on_event(sound_gap(**{first.item_id: 700, second.item_id: 150}), None, 1.0)
    machine.on_event(first.text("three four"), None, 1.0)
    for event in (first.audio(500), first.done(), second.created(), second.item_added()):
        machine.on_event(event, None, 1.0)
    machine.on_event(second.text("five six"), None, 1.0)
    machine.on_event(second.audio(600), None, 1.0)
    heard_ms = []
    for _ in range(14):
        machine.take(24 * 100, 2.0)
        heard_ms.append(machine.playback.heard_samples(first.item_id) // 24)
    # What is missing lies between what had come and what comes; nobody hears silence for it.
    assert heard_ms == [200, 300, 800, 900, 1000, 1100, *[1200] * 8]
    assert machine.playback.heard_samples(second.item_id) == 24 * 750
    machine.on_event(second.audio(600), None, 3.0)
    machine.take(24 * 50, 3.0)
    (truncated, _) = machine.silenced(unplayed_samples=24 * 20)
    assert truncated == Send(
        TruncateItem(item_id=second.item_id, content_index=0, audio_end_ms=780)
    )


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
