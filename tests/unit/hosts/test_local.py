from __future__ import annotations

import pytest

from duologue.core.errors import AuthError, CapacityError, ProtocolError, UnknownSession
from duologue.hosts.local import LocalHost
from duologue.hosts.port import LateOpening, LookingOn, Opening, Return
from duologue.protocol.commands import UpdateSession
from duologue.protocol.duplex.commands import ResumeSession
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.errors import ErrorCode
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.owners import ANYBODY
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall, FakeConnection
from tests.fakes.plugin import FakePlugin

DUPLEX = DuplexPatch(instructions="Be brief.")


class Scene(FakeCall):
    """A call that is there already, and a host that receives others."""

    def __init__(self, *, max_sessions: int = 8, duplex: bool = False) -> None:
        super().__init__(
            FakePlugin(),
            settings=SessionSettings(max_sessions=max_sessions),
            patch=DUPLEX if duplex else SessionPatch(),
            resumable=True,
        )
        self.host = LocalHost(self.manager, self.clock, self.wheel)


async def test_a_session_is_opened_as_it_was_asked_for() -> None:
    scene = Scene()
    port = await scene.host.open(Opening(patch=SessionPatch(instructions="Sing.")))
    assert len(scene.host) == len(await scene.host.look()) == 2
    session = scene.manager.get(port.id)
    assert session is not None
    assert session.machine.resource().instructions == "Sing."
    assert session.lease is None
    port.close("closed")
    assert len(scene.host) == 1


async def test_a_preview_opens_nothing() -> None:
    scene = Scene()
    shown = await scene.host.preview(None, SessionPatch(instructions="Sing."))
    assert getattr(shown, "instructions", None) == "Sing."
    assert len(scene.host) == 1


async def test_there_is_room_for_so_many_and_a_late_one_keeps_its_place() -> None:
    scene = Scene(max_sessions=2)
    late = await scene.host.open(LateOpening(opening=Opening(), timeout_s=5))
    with pytest.raises(CapacityError):
        scene.host.check_room()
    with pytest.raises(CapacityError):
        await scene.host.open(Opening())
    late.close("closed")
    scene.host.check_room()


async def test_who_describes_a_session_late_gets_it_then() -> None:
    scene = Scene()
    secret = SessionPatch(instructions="Of the secret.")
    late = await scene.host.open(
        LateOpening(opening=Opening(patch=secret, resumable=True), timeout_s=5)
    )
    connection = FakeConnection(late)  # type: ignore[arg-type]
    late.attach(connection)
    assert len(scene.host) == 1
    late.offer(UpdateSession(session=DuplexPatch(temperature=0.5)))
    assert len(scene.host) == 2
    session = scene.manager.get(late.id)
    assert session is not None
    assert session.machine.resource().instructions == "Of the secret."
    assert connection.token


async def test_who_comes_late_may_go_on_with_a_session_even_where_all_is_full() -> None:
    scene = Scene(max_sessions=1, duplex=True)
    token, received = scene.client.token, scene.client.received
    scene.lose()
    late = await scene.host.open(LateOpening(opening=Opening(), timeout_s=5))
    connection = FakeConnection(late, scene.client)  # type: ignore[arg-type]
    late.attach(connection)
    connection.wire.resumed(scene.client.written)
    late.offer(
        ResumeSession(
            session_id=scene.session.id,
            resume_token=token,
            last_received_server_event_seq=received,
        )
    )
    assert late.id == scene.session.id
    assert scene.session.attached


async def test_a_stock_client_returns_by_its_address() -> None:
    scene = Scene()
    token = scene.client.token
    scene.lose()
    port = await scene.host.open(
        Return(session_id=scene.session.id, resume_token=token, owner=ANYBODY)
    )
    assert not scene.session.attached
    port.attach(FakeConnection(port, scene.client))  # type: ignore[arg-type]
    assert scene.session.attached


async def test_a_wrong_token_and_a_duplex_session_are_refused_by_address() -> None:
    scene = Scene(duplex=True)
    with pytest.raises(AuthError):
        await scene.host.open(Return(session_id=scene.session.id, resume_token="guessed"))
    with pytest.raises(ProtocolError) as caught:
        await scene.host.open(Return(session_id=scene.session.id, resume_token=scene.client.token))
    assert caught.value.code == ErrorCode.RESUME_UNSUPPORTED


async def test_there_are_no_calls_of_other_gateways() -> None:
    scene = Scene()
    scene.host.call_began("rtc_1", ANYBODY)
    scene.host.call_ended("rtc_1")
    for attempt in (
        scene.host.open(LookingOn(call_id="rtc_1")),
        scene.host.hang_up("rtc_1", ANYBODY),
    ):
        with pytest.raises(UnknownSession):
            await attempt


def test_a_host_that_goes_down_takes_nobody() -> None:
    scene = Scene()
    assert scene.host.accepting
    scene.manager.accepting = False
    assert not scene.host.accepting
    with pytest.raises(CapacityError):
        scene.host.begin(Opening())
