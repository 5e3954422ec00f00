"""Interruptions reach connections that hold sound back, and no others."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from duologue.engines.payloads import AudioChunk
from duologue.protocol.commands import CreateResponse, ResponseParams
from duologue.protocol.duplex.commands import BargeIn
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.port import CallsBackSound
from tests.fakes.call import FakeCall, FakeConnection
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

INTERRUPT = CreateResponse(response=ResponseParams(interrupt=True))


class Holder(FakeConnection, CallsBackSound):
    """Holds all sound back."""

    def __init__(self, call: FakeCall) -> None:
        super().__init__(call.session, call.client)
        self.silenced: list[tuple[str, tuple[str, ...]]] = []

    def on_silenced(self, item_id: str, beside: Collection[str] = ()) -> None:
        self.silenced.append((item_id, tuple(beside)))


def speaking_call(*, duplex: bool) -> FakeCall:
    call = FakeCall(
        FakePlugin(),
        FakeEngine(pipelines=(STAGE, "vad", "end_of_turn", "asr")),
        patch=DuplexPatch() if duplex else SessionPatch(),
        resumable=duplex,
    )
    call.send(CreateResponse())
    stage = call.engine.of(STAGE)[0]
    call.engine.output(stage.request.id, AudioChunk(b"\x01\x00" * 24000, 24000))
    return call


@pytest.mark.parametrize("duplex", [False, True])
def test_who_holds_sound_is_told_of_an_interruption(duplex: bool) -> None:
    call = speaking_call(duplex=duplex)
    holder = Holder(call)
    if duplex:
        ticket = call.manager.claim(
            call.session.id, call.client.token, call.session.owner, call.client.received
        )
        holder.wire.resumed(call.client.written)
        ticket.use(holder)
    else:
        call.session.attach(holder)
    call.client = holder
    call.send(INTERRUPT)
    assert ("", ()) in holder.silenced
    assert any(item_id for item_id, _ in holder.silenced)


def test_a_connection_that_came_later_is_told_in_its_place() -> None:
    call = speaking_call(duplex=False)
    first, second = Holder(call), Holder(call)
    call.session.attach(first)
    call.session.attach(second)
    call.client = second
    call.send(INTERRUPT)
    assert first.silenced == []
    assert second.silenced


def test_others_go_on_with_the_journal_alone() -> None:
    call = speaking_call(duplex=True)
    assert call.machine.speaking.silencer.connection is None
    call.send(BargeIn())
    assert call.session.lease is not None
