"""All calls over WebRTC of this process: opened by an offer, found by their ids, ended at last.

This module must not know HTTP, nor what happens in a call.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from duologue.core.clock import Clock
from duologue.core.errors import ClientError, DuologueError, UnknownSession
from duologue.core.ids import IdMaker
from duologue.core.tasks import guard
from duologue.core.wheel import TimerWheel
from duologue.gateway.auth import Caller
from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.webrtc.backend import HOW_TO_INSTALL, load_backend
from duologue.gateway.webrtc.call import Call
from duologue.gateway.webrtc.commands import check_patch
from duologue.gateway.webrtc.offer import Offer
from duologue.gateway.webrtc.peer import Backend, BackendMissing
from duologue.gateway.webrtc.playout import Playout
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.hosts.port import HostPort, LookingOn, Opening, Return
from duologue.protocol.dialect import Dialect
from duologue.protocol.errors import ErrorCode
from duologue.protocol.json_codec import REALTIME_JSON
from duologue.sessions.owners import Owner
from duologue.sessions.port import Joined
from duologue.sessions.via import Via
from duologue.telemetry import get_logger

BY_WEBRTC = Via("webrtc", "realtime")

REPLACED = "replaced"

MAX_LEFT = 256
"""Lost calls whose speech is kept for the next one, five seconds at most of each."""


class Calls:
    """The calls.

    Args:
        host: Where their sessions are opened, within its limit.
        dialect: Of their data channels.
    """

    def __init__(
        self,
        host: HostPort,
        settings: WebRtcSettings,
        clock: Clock,
        wheel: TimerWheel,
        new_id: IdMaker,
        dialect: Dialect = REALTIME_JSON,
    ) -> None:
        self._host = host
        self._dialect = dialect
        self._settings = settings
        self._clock = clock
        self._wheel = wheel
        self._new_id = new_id
        self._backend: Backend | None = None
        self._missing = HOW_TO_INSTALL
        self._group: asyncio.TaskGroup | None = None
        self._calls: dict[str, tuple[Call, Owner]] = {}
        self._left: OrderedDict[str, Playout] = OrderedDict()
        """By session: what lost calls had still to play."""

    def __len__(self) -> int:
        return len(self._calls)

    async def start(self) -> None:
        """Load the WebRTC library; from now on there may be calls, until ``stop``.

        Raises:
            ConfigError: The library that the settings name cannot be used.
        """
        try:
            self._backend = await load_backend(self._settings)
        except BackendMissing as exc:
            if self._settings.backend != "auto":
                raise
            self._missing = exc.message
        # Entered and left by hand: what happens between is not the group's, and would come out of
        # it wrapped.
        group = asyncio.TaskGroup()
        await group.__aenter__()
        self._group = group

    async def stop(self) -> None:
        """End the calls that go on, and wait until nothing of them is left."""
        group, self._group = self._group, None
        if group is not None:
            for call, _ in tuple(self._calls.values()):
                call.end(ErrorCode.SHUTTING_DOWN)
            await group.__aexit__(None, None, None)

    async def open(
        self,
        offer: Offer,
        model: str | None,
        asked: BoundSession,
        caller: Caller,
        *,
        resumable: bool = False,
        back: Return | None = None,
    ) -> tuple[str, str]:
        """Open a call.

        Args:
            model: What the URL asks for.
            asked: What the request's body asks for; a client secret has the last word.
            resumable: The session may go on in another call, when this one's connection is lost.
            back: The session that the call goes on with.

        Returns:
            The call's id, and the answer to the offer.

        Raises:
            ClientError: The offer or the session's settings cannot be taken.
            CapacityError: There is no room.
            DuologueError: No WebRTC library is installed.
        """
        if self._backend is None or self._group is None:
            raise DuologueError(self._missing, code=ErrorCode.WEBRTC_UNAVAILABLE)
        self._replace(offer)
        bound = caller.session or asked
        if offer.audio is not None:
            check_patch(bound.patch)
        opening = Opening(
            model=bound.model or model,
            patch=bound.patch,
            owner=caller.owner,
            edge_plays=offer.audio is not None,
            via=BY_WEBRTC,
            resumable=resumable,
        )
        session = await self._host.open(back or opening)
        call = Call(
            self._new_id("rtc"),
            offer,
            session,
            self._settings,
            self._clock,
            self._wheel,
            self._dialect,
            left=None if back is None else self._unplayed(back.session_id),
            goes_on=back is not None,
        )
        try:
            answer = await call.answer(self._backend, self._group)
        except BaseException:
            await call.release()
            raise
        self._calls[call.id] = call, caller.owner
        self._host.call_began(call.id, caller.owner)
        self._group.create_task(guard(self._hold(call), call.crashed), name=f"webrtc-{call.id}")
        return call.id, answer

    async def hang_up(self, call_id: str, caller: Caller) -> None:
        """End a call, held here or by another gateway of the same host.

        Raises:
            UnknownSession: It has ended, is somebody else's or never was.
        """
        if call_id in self._calls:
            self._find(call_id, caller.owner).end("closed")
        else:
            await self._host.hang_up(call_id, caller.owner)

    async def observe(self, call_id: str, caller: Caller) -> Joined:
        """Let somebody look on at a call, and say something.

        Raises:
            UnknownSession: As in ``hang_up``.
        """
        if call_id in self._calls:
            return self._find(call_id, caller.owner).observe()
        return await self._host.open(LookingOn(call_id=call_id, owner=caller.owner))

    # For other gateways of the same host

    def look_on(self, call_id: str, owner: Owner) -> Joined:
        """Let somebody look on who came to another gateway; raises ``UnknownSession``."""
        return self._find(call_id, owner).observe()

    def end_call(self, call_id: str, owner: Owner) -> None:
        """End a call for somebody who came to another gateway; raises ``UnknownSession``."""
        self._find(call_id, owner).end("closed")

    async def _hold(self, call: Call) -> None:
        try:
            await call.run()
        finally:
            del self._calls[call.id]
            if call.waits and call.playout is not None and call.playout.waiting_ms:
                self._left[call.session.id] = call.playout
                if len(self._left) > MAX_LEFT:
                    self._left.popitem(last=False)
            self._host.call_ended(call.id)
            get_logger("gateway").info("webrtc_call_ended", call_id=call.id, calls=len(self))

    def _unplayed(self, session_id: str) -> Playout | None:
        """Return what a lost call, or one that is about to be replaced, has still to play."""
        left = self._left.pop(session_id, None)
        for call, _ in self._calls.values():
            if call.session.id == session_id:
                left = call.playout
        return left

    def _find(self, call_id: str, owner: Owner) -> Call:
        call, whose = self._calls.get(call_id, (None, None))
        if call is None or owner != whose:
            raise UnknownSession(f"there is no call {call_id[:80]!r}, or it has ended")
        return call

    def _replace(self, offer: Offer) -> None:
        """End the call that the same offer opened before: its answer never arrived."""
        for call, _ in tuple(self._calls.values()):
            if call.offer.identity == offer.identity:
                call.end(REPLACED)


def unsupported(action: str) -> ClientError:
    """Return the error for what only phone calls can do."""
    return ClientError(
        f"'{action}' is for calls that come over SIP, which this server does not take; a WebRTC "
        "call is accepted by its answer and ended with 'hangup'",
        code=ErrorCode.UNSUPPORTED,
    )
