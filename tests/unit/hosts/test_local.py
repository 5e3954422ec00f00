from __future__ import annotations

from collections.abc import Sequence

import pytest

from duologue.core.errors import AuthError, CapacityError, ProtocolError, UnknownSession
from duologue.hosts.call_queue import CallQueue
from duologue.hosts.local import LocalHost
from duologue.hosts.port import InTurn, LateOpening, LookingOn, Opening, Return
from duologue.protocol.commands import UpdateSession
from duologue.protocol.duplex.commands import ResumeSession
from duologue.protocol.duplex.events import SessionQueued
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import SessionCreated
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.owners import ANYBODY
from duologue.sessions.port import Delivery, Joined
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


class OnLine:
    """The connection of one who waits: it reads whatever comes."""

    def __init__(self, port: Joined) -> None:
        self.port = port
        self.read: list[type] = []
        self.ended: str | None = None
        port.attach(self)

    def on_output(self) -> None:
        self.read += [type(each.event) for each in self.port.pull(1000).deliveries]

    def on_end(self, reason: str) -> None:
        self.ended = reason

    def on_let_go(self, reason: str, last_words: Sequence[Delivery]) -> None:
        raise AssertionError("nobody takes over")

    def on_pressure(self, on: bool) -> None:
        raise AssertionError("nothing was said")


@pytest.mark.parametrize("late", [False, True])
async def test_who_asks_to_waits_for_a_place_and_nobody_overtakes_him(late: bool) -> None:
    scene = Scene(max_sessions=1)
    host = LocalHost(scene.manager, scene.clock, scene.wheel, CallQueue(1))
    opening = LateOpening(opening=Opening(), timeout_s=5) if late else Opening()
    in_turn = InTurn(opening=opening, timeout_s=60)
    line = OnLine(await host.open(in_turn))
    assert line.read == [SessionQueued]
    with pytest.raises(CapacityError, match="1 calls wait for one: the limit is 1"):
        await host.open(in_turn)
    scene.manager.close_all("closed")
    scene.manager.accepting = True
    for overtaking in (
        lambda: host.receive(Opening()),
        lambda: host.receive(LateOpening(opening=Opening(), timeout_s=5)),
        lambda: host.begin(Opening()),
        host.check_room,
    ):
        with pytest.raises(CapacityError, match="1 calls wait"):
            overtaking()
    back = host.receive(LateOpening(opening=Opening(), timeout_s=5, resumes=True))
    scene.clock.advance(1)
    assert len(host.queue) == 0
    assert line.ended is None
    if not late:
        assert SessionCreated in line.read
    back.close("closed")
    line.port.close("closed")
    host.check_room()


async def test_where_there_is_room_or_no_queue_nobody_waits() -> None:
    scene = Scene(max_sessions=2)
    in_turn = InTurn(opening=Opening(), timeout_s=60)
    port = await scene.host.open(in_turn)
    assert len(scene.host) == 2
    with pytest.raises(CapacityError) as full:
        await scene.host.open(in_turn)
    assert full.value.code == ErrorCode.SERVER_FULL
    port.close("closed")
