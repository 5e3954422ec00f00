from __future__ import annotations

import pytest

from duologue.clients.errors import CallEnded
from duologue.clients.transports.in_process import InProcessTransport
from duologue.duplex_plugins.echo import EchoPlugin
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import ClearAudio, TruncateItem
from duologue.protocol.events import AudioCleared, ErrorEvent, SessionCreated
from duologue.protocol.response_events import AudioDelta
from tests.fakes.call import FakeCall


def make() -> tuple[FakeCall, InProcessTransport]:
    call = FakeCall(EchoPlugin())
    return call, InProcessTransport(call.session)


async def test_what_the_session_said_before_is_received_in_order() -> None:
    call = FakeCall(EchoPlugin())
    call.client.reading = False
    session = call.manager.open(None)
    transport = InProcessTransport(session)
    await transport.send(ClearAudio())
    first, second = await transport.receive(), await transport.receive()
    assert isinstance(first.event, SessionCreated)
    assert isinstance(second.event, AudioCleared)
    assert (first.seq, second.seq) == (1, 2)


async def test_audio_goes_in_and_comes_back() -> None:
    _, transport = make()
    for _ in range(2):
        await transport.send(AppendAudio(audio=b"\x01\x00" * 480))
    while not isinstance((await transport.receive()).event, AudioDelta):
        pass


async def test_a_command_is_refused_as_on_the_wire() -> None:
    _, transport = make()
    await transport.send(TruncateItem(item_id="i", audio_end_ms=-1, event_id="mine"))
    event = (await transport.receive()).event
    assert isinstance(event, ErrorEvent)
    assert event.error.event_id == "mine"
    assert event.error.code == "invalid_value"


async def test_hanging_up_ends_the_session_and_both_directions() -> None:
    call, transport = make()
    await transport.close()
    await transport.close()
    assert len(call.manager) == 0
    for work in (transport.receive(), transport.send(ClearAudio())):
        with pytest.raises(CallEnded) as ended:
            await work
        assert ended.value.is_normal


async def test_what_the_session_still_had_to_say_comes_before_its_end() -> None:
    call, transport = make()
    call.send(ClearAudio())
    call.session.close("session_expired")
    assert isinstance((await transport.receive()).event, AudioCleared)
    with pytest.raises(CallEnded, match="maximum duration") as ended:
        await transport.receive()
    assert ended.value.close_code == 1001


async def test_a_session_that_was_simply_closed_ends_normally() -> None:
    call, transport = make()
    call.session.close("closed")
    with pytest.raises(CallEnded) as ended:
        await transport.receive()
    assert ended.value.is_normal
