from __future__ import annotations

from duologue.protocol.duplex.events import SessionReplaced
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import ResumableSessionCreated, SessionCreated
from duologue.sessions.resumption.journal import Gap
from duologue.sessions.resumption.resume_wire import created, replaced, resumed, resync, too_old
from tests.fakes.call import FakeCall
from tests.fakes.plugin import FakePlugin


def test_a_greeting_has_a_token_only_where_there_is_one() -> None:
    resource = FakeCall(FakePlugin()).machine.resource()
    assert type(created(resource, None, 1)) is SessionCreated
    greeting = created(resource, "token", 3)
    assert isinstance(greeting, ResumableSessionCreated)
    assert (greeting.resume_token, greeting.attachment_generation) == ("token", 3)


def test_what_a_connection_is_told_that_goes_on() -> None:
    resource = FakeCall(FakePlugin(), patch=DuplexPatch(instructions="Hi.")).machine.resource()
    told = resumed(resource, "token", 2, 4800, "event_of_mine")
    assert told.session.instructions == "Hi."
    assert (told.session_id, told.next_sample) == (resource.id, 4800)
    assert told.last_event_id == "event_of_mine"
    assert replaced("s", 2) == SessionReplaced(session_id="s", attachment_generation=2)


def test_how_a_session_stands_that_has_said_nothing() -> None:
    call = FakeCall(FakePlugin(), patch=DuplexPatch())
    machine = call.machine
    state = resync(machine.resource(), Gap.EVENTS, machine.history, machine.speaking, 7, 100.0, {})
    assert state.reason == "journal_gap"
    assert state.snapshot.server_event_seq == 7
    assert state.snapshot.items == state.snapshot.playback == ()
    assert state.snapshot.active_response_id is None
    sound = resync(machine.resource(), Gap.SOUND, machine.history, machine.speaking, 7, 100.0, {})
    assert sound.reason == "sound_gap"


def test_who_is_too_old_for_another_answer_is_told_what_to_do() -> None:
    assert too_old().code == "session_expired"
    assert "open a new one" in too_old().message
