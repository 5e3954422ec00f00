"""The backlog: long appends in slices, everything in order, bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.mailbox import MailboxFull
from duologue.duplex_plugins.scripted import ScriptedPlugin, ScriptedSettings
from duologue.protocol.commands import AppendAudio, CommitAudio
from duologue.protocol.events import AudioCommitted, ErrorEvent
from duologue.sessions.backlog import SLICE_BYTES, Backlog, is_long
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine


@given(size=st.integers(1, 5 * SLICE_BYTES))
def test_the_slices_of_an_append_are_the_append(size: int) -> None:
    audio = bytes(range(256)) * (size // 256 + 1)
    append = AppendAudio(audio=audio[:size], event_id="e")
    backlog = Backlog(4)
    backlog.slice_up(append)
    pieces = []
    while (piece := backlog.take_slice()) is not None:
        assert len(piece.audio) <= SLICE_BYTES
        assert piece.event_id == "e"
        pieces.append(piece.audio)
    assert b"".join(pieces) == append.audio
    assert not backlog


def test_a_full_backlog_refuses_and_keeps_what_it_has() -> None:
    backlog = Backlog(1)
    backlog.put(CommitAudio())
    with pytest.raises(MailboxFull):
        backlog.put(CommitAudio())
    assert backlog.take() == CommitAudio()
    assert backlog.take() is None


def test_only_an_append_can_be_long() -> None:
    assert is_long(AppendAudio(audio=bytes(SLICE_BYTES + 1)))
    assert not is_long(AppendAudio(audio=bytes(SLICE_BYTES)))
    assert not is_long(CommitAudio())


def make_call(**settings: int) -> FakeCall:
    engine = FakeEngine(pipelines=("scripted",))
    return FakeCall(ScriptedPlugin(ScriptedSettings()), engine, SessionSettings(**settings))


def test_what_follows_a_long_append_waits_for_its_end() -> None:
    call = make_call()
    minute = AppendAudio(audio=bytes(60 * 48_000))
    call.send(minute, CommitAudio())
    assert call.client.of(AudioCommitted) == []
    call.clock.advance(1.0)
    assert len(call.client.of(AudioCommitted)) == 1
    assert call.client.of(ErrorEvent) == []
    assert call.machine.audio_ms() in range(59_990, 60_001)


def test_a_long_append_that_does_not_fit_is_refused_whole_and_once() -> None:
    call = make_call(input_buffer_ms=30_000)
    call.send(AppendAudio(audio=bytes(48_000)))
    call.send(AppendAudio(audio=bytes(60 * 48_000), event_id="e9"))
    call.clock.advance(1.0)
    assert call.client.error().error.code == "input_audio_buffer_full"
    assert call.client.error().error.event_id == "e9"
    assert call.machine.audio_ms() <= 1_000


def test_short_inputs_pass_until_a_long_append_is_next() -> None:
    backlog = Backlog(8)
    long = AppendAudio(audio=bytes(SLICE_BYTES + 1))
    for item in (CommitAudio(), long, CommitAudio(event_id="after")):
        backlog.put(item)
    assert backlog.take_short() == CommitAudio()
    assert backlog.take_short() is None
    assert backlog.take() == long
    backlog.slice_up(long)
    assert backlog.take_short() is None
    while backlog.take_slice() is not None:
        pass
    assert backlog.take_short() == CommitAudio(event_id="after")
    assert not backlog
