"""What a session looks like from outside."""

from __future__ import annotations

import msgspec
import pytest

from duologue.sessions.via import Via
from duologue.sessions.watching.look import look_at, unplayed_s
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE
from tests.fakes.taped_call import SECRETS, interrupted_call, plugin


def test_a_session_is_seen_in_numbers_and_states_and_nothing_that_was_said() -> None:
    call = interrupted_call(None)
    look = look_at(call.session, call.clock.now())
    said = msgspec.json.encode(look).decode()
    assert not any(word in said for secret in SECRETS for word in secret.split())
    assert look.state == "client_gone"
    assert look.heard_ms == pytest.approx(32 * 170, abs=5)
    assert look.age_s == 5.4
    assert not look.attached


def test_who_has_the_floor_is_seen() -> None:
    call = FakeCall(plugin(), FakeEngine(pipelines=("vad", "end_of_turn", "asr", STAGE)))
    states = [look_at(call.session, 0.0).state]
    call.say(30)
    states.append(look_at(call.session, 0.0).state)
    call.hush(60)
    call.transcribe("x")
    states.append(look_at(call.session, 0.0).state)
    assert states == ["idle", "person_speaking", "answering"]
    look = look_at(call.session, call.clock.now())
    assert (look.attached, look.responses, look.transport) == (True, 1, "websocket")


def test_the_manager_shows_all_and_counts_them_by_how_they_came_in() -> None:
    call = FakeCall(plugin())
    phone = call.manager.open(None, via=Via("telephony", "carrier"))
    assert [look.id for look in call.manager.look()] == [call.session.id, phone.id]


def test_what_is_yet_to_be_heard_is_what_waits_and_what_plays() -> None:
    call = FakeCall(plugin())
    assert unplayed_s(call.machine.speaking, 0.0) == 0.0
