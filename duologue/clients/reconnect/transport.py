"""A transport that outlives its connections: a lost one is dialled again, and the call goes on.

To the call it is one transport, on which events about the connection come, too. This module must
not know what commands and events mean, beyond those that say where a call stands.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from duologue.clients.errors import CallEnded, CallError, ConnectionLost, SessionGone
from duologue.clients.reconnect.doors import Door, Place
from duologue.clients.reconnect.events import (
    AudioDropped,
    CallLost,
    LineEvent,
    Reconnected,
    Reconnecting,
)
from duologue.clients.reconnect.line_watch import LineWatch, Verdict
from duologue.clients.reconnect.policy import Backoff, ReconnectPolicy
from duologue.clients.reconnect.sent_log import SentLog
from duologue.clients.transports.base import Received, Transport
from duologue.codecs.wire_length import wire_samples
from duologue.core.audio import samples_to_ms
from duologue.core.clock import Clock
from duologue.core.errors import AuthError, CapacityError, DuologueError, ProtocolError
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import AudioFormat, PcmFormat, format_rate_hz
from duologue.protocol.commands import Command
from duologue.protocol.duplex.commands import CloseSession, Heartbeat
from duologue.protocol.duplex.events import (
    HeartbeatAcknowledged,
    InputAccepted,
    SessionClosed,
    SessionExpired,
    SessionResumed,
)
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import (
    ErrorEvent,
    ResumableSessionCreated,
    SessionCreated,
    SessionUpdated,
)

MAY_GO_ON = frozenset({1001, 1006, 1011, 1012, 1013, 1014})
"""Close codes after which the session may be there still: the server, an edge of it or a proxy went
away, or the client took too little."""

_TRY_LATER = frozenset({ErrorCode.SERVER_FULL, ErrorCode.SHUTTING_DOWN})
_TRY_LATER_S = 1.0

Sleep = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class _Outage:
    """What is known of a connection that is lost."""

    backoff: Backoff
    lost_by: CallError
    because: DuologueError
    at_least_s: float = 0.0
    rolls_over: bool = False


class ReconnectingTransport:
    """A ``Transport`` for one call.

    Until the first connection has brought a session that can be resumed, and after one that has
    ended in good order, a lost connection is the end, as with any transport.

    Args:
        first: The connection on which the call begins.
        door: How the next ones come in.
        dice: For the jitter of the waits.
    """

    def __init__(
        self,
        first: Transport,
        door: Door,
        policy: ReconnectPolicy,
        clock: Clock,
        dice: random.Random,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.server_plays = first.server_plays
        self.log = SentLog(policy.kept_bytes)
        """What may have to be sent again."""

        self.kept_bytes = policy.kept_bytes
        """Of audio, while there is no connection."""

        self._transport: Transport = first
        self._door = door
        self._policy = policy
        self._now = clock.now
        self._dice = dice
        self._sleep = sleep
        self._place: Place | None = None
        self._format: AudioFormat = PcmFormat()
        self._watch = LineWatch(policy.silence_s, clock.now())
        self._told: deque[Received] = deque()
        self._up = asyncio.Event()
        self._up.set()
        self._outage: _Outage | None = None
        self._over = False
        self._closing = False
        self._rolls_over = False
        self._dropped_samples = 0
        self._failure: CallError | None = None

    @property
    def is_up(self) -> bool:
        """There is a connection."""
        return self._up.is_set()

    # Transport

    async def send(self, command: Command) -> None:
        """Hand a command over; waits while there is no connection."""
        if isinstance(command, CloseSession):
            self._closing = True
        is_noted = False
        while True:
            await self._up.wait()
            transport = self._transport
            if self._door.acknowledges and not is_noted:
                command, is_noted = self.log.note(command, self._format), True
            try:
                await transport.send(command)
            except (ConnectionLost, CallEnded) as exc:
                if not self._goes_on(exc):
                    raise
                if transport is self._transport:
                    self._up.clear()  # until the reader, who finds it out, too, has another one
            else:
                return
            if is_noted:
                return  # it is sent with all that is noted

    async def receive(self) -> Received:
        """Return the next event of the session, or about its connection."""
        while True:
            if self._told:
                return self._told.popleft()
            if self._failure is not None:
                raise self._failure
            if self._outage is not None:
                await self._try_again(self._outage)
                continue
            try:
                received = await self._listen()
            except (ConnectionLost, CallEnded) as exc:
                if not self._goes_on(exc):
                    raise
                self._lose(exc)
                continue
            self._follow(received)
            return received

    async def close(self) -> None:
        """Hang up."""
        self._over = True
        await self._transport.close()

    def abort(self) -> None:
        """Let go of the connection at once."""
        self._transport.abort()

    def dropped(self, audio: AppendAudio) -> None:
        """Note audio that was dropped before it was handed over: too much waits."""
        if not self._dropped_samples:
            self._tell(AudioDropped())
        self._dropped_samples += wire_samples(audio.audio, self._format)

    # While there is a connection

    async def _listen(self) -> Received:
        """Return the next event; asks for a sign of life where none comes."""
        watch = self._watch
        if self._place is None or not self._door.acknowledges:
            return await self._transport.receive()
        while True:
            try:
                async with asyncio.timeout(watch.look_every_s):
                    received = await self._transport.receive()
            except TimeoutError:
                pass
            else:
                watch.heard(self._now())
                return received
            match watch.look(self._now()):
                case Verdict.ASK:
                    await self._ask_for_a_sign()
                case Verdict.DEAD:
                    raise ConnectionLost(
                        f"nothing has come from the server for {self._policy.silence_s:g} s"
                    )
                case Verdict.FINE:
                    pass

    async def _ask_for_a_sign(self) -> None:
        try:
            # Into a black hole, nothing more may fit.
            async with asyncio.timeout(self._watch.look_every_s):
                await self._transport.send(Heartbeat())
        except TimeoutError:
            pass

    def _follow(self, received: Received) -> None:
        """Note where the call stands."""
        event = received.event
        if received.seq and self._place is not None and received.seq > self._place.received:
            self._place = Place(self._place.session_id, self._place.token, received.seq)
        match event:
            case ResumableSessionCreated(session=session, resume_token=token):
                if self._place is None:
                    self.log.confirm_first()  # what opened the session
                self._place = Place(session.id, token, received.seq or 0)
                self._format = session.audio.input.format
            case SessionResumed(session=session, resume_token=token):
                seen = 0 if self._place is None else self._place.received
                self._place = Place(session.id, token, seen)
                self._format = session.audio.input.format
            case SessionCreated(session=session) | SessionUpdated(session=session):
                self._format = session.audio.input.format
            case InputAccepted(next_sample=place) | HeartbeatAcknowledged(next_sample=place):
                self.log.confirm_audio(place)
            case SessionClosed():
                self._over = True
            case SessionExpired(rollover=rollover):
                self._over, self._rolls_over = rollover is None, rollover is not None
            case _:
                pass

    def _goes_on(self, exc: CallError) -> bool:
        """Tell whether the session may be there still."""
        if self._place is None or self._over or self._closing:
            return False
        if self._rolls_over or not self._door.acknowledges:
            # Over WebRTC a line ends in one way only, whatever has ended it: the server knows.
            return True
        return isinstance(exc, ConnectionLost) or (
            isinstance(exc, CallEnded) and exc.close_code in MAY_GO_ON
        )

    # While there is none

    def _lose(self, exc: CallError) -> None:
        self._up.clear()
        self._transport.abort()
        now = self._now()
        backoff = Backoff(self._policy, self._dice, now)
        self._outage = outage = _Outage(backoff, exc, exc, rolls_over=self._rolls_over)
        self._rolls_over = False
        self._announce(outage)

    def _announce(self, outage: _Outage) -> None:
        wait_s = outage.backoff.next_wait(self._now(), outage.at_least_s)
        if wait_s is None:
            self._give_up(
                ConnectionLost(
                    f"the connection broke, and no other one came about in "
                    f"{self._policy.give_up_s:g} s ({outage.backoff.attempts} attempts; the last: "
                    f"{outage.because.message}). Call again; what was said is in the transcript"
                )
            )
            return
        outage.at_least_s = wait_s
        self._tell(
            Reconnecting(
                attempt=outage.backoff.attempts, wait_s=wait_s, because=outage.because.message
            )
        )

    async def _try_again(self, outage: _Outage) -> None:
        """Make one attempt, and get ready what there is to tell of it."""
        assert self._place is not None, "only a session that is known is gone on with"
        await self._sleep(outage.at_least_s)
        outage.at_least_s = 0.0
        try:
            async with asyncio.timeout(self._policy.attempt_timeout_s):
                transport, first = await self._door.open(self._place)
        except TimeoutError:
            outage.because = ConnectionLost(
                f"the server did not answer within {self._policy.attempt_timeout_s:g} s"
            )
        except (AuthError, SessionGone) as exc:
            code = exc.refused_with if isinstance(exc, SessionGone) else exc.code
            self._refuse(outage, exc.message, code)
            return
        except CapacityError as exc:
            outage.because, outage.at_least_s = exc, exc.retry_after_s
        except (CallError, ProtocolError) as exc:
            outage.because = exc
        else:
            if await self._enter(outage, transport, first):
                return
        if self._failure is None:
            self._announce(outage)

    async def _enter(self, outage: _Outage, transport: Transport, first: Received) -> bool:
        """Go on with a connection, if it leads to the session; tells whether it does."""
        match first.event:
            case ErrorEvent(error=error):
                transport.abort()
                if error.code not in _TRY_LATER:
                    self._refuse(outage, error.message, error.code or "")
                    return False
                outage.because = ConnectionLost(error.message)
                outage.at_least_s = _TRY_LATER_S
                return False
            case SessionResumed(next_sample=next_sample, last_event_id=last):
                self.log.confirm_audio(next_sample)
                if last is not None:
                    self.log.confirm_command(last)
            case ResumableSessionCreated(next_sample=next_sample, last_event_id=last):
                self.log.confirm_audio(next_sample or 0)
                if last is not None:
                    self.log.confirm_command(last)
            case _:
                transport.abort()
                outage.because = ConnectionLost("the server did not go on with the session")
                return False
        self._transport = transport
        self._watch = LineWatch(self._policy.silence_s, self._now())
        before = self._place
        assert before is not None, "only a session that is known is gone on with"
        self._follow(first)
        again = self.log.to_send_again() if self._door.acknowledges else []
        try:
            for command in again:
                # Nobody watches the line yet; it may be a black hole already.
                async with asyncio.timeout(self._policy.silence_s):
                    await transport.send(command)
        except (ConnectionLost, CallEnded, TimeoutError) as exc:
            transport.abort()
            silent = ConnectionLost("the server takes nothing")
            outage.because = exc if isinstance(exc, CallError) else silent
            return False
        self._outage = None
        self._told.append(first)
        self._tell(self._reconnected(outage, len(again), before))
        self._up.set()
        return True

    def _reconnected(self, outage: _Outage, again: int, before: Place) -> Reconnected:
        assert self._place is not None, "it was gone on with"
        lost = self._dropped_samples + self.log.dropped_samples
        self._dropped_samples = self.log.dropped_samples = 0
        moved = before.session_id != self._place.session_id
        return Reconnected(
            gap_s=self._now() - outage.backoff.lost_at,
            attempts=outage.backoff.attempts,
            sent_again=again,
            dropped_ms=samples_to_ms(lost, format_rate_hz(self._format)),
            rolled_over_from=before.session_id if moved else None,
        )

    def _refuse(self, outage: _Outage, message: str, code: str) -> None:
        """The server has nothing to go on with."""
        was_ended = outage.rolls_over or not self._door.acknowledges
        if was_ended and isinstance(outage.lost_by, CallEnded):
            self._give_up(outage.lost_by)
            return
        self._give_up(
            SessionGone(
                f"the connection broke, and the session is over ({code}): {message}. Call again; "
                "what was said is in the transcript",
                refused_with=code,
            )
        )

    def _give_up(self, error: CallError) -> None:
        self._failure = error
        self._outage = None
        self._tell(CallLost(code=error.code, message=error.message))

    def _tell(self, event: LineEvent) -> None:
        self._told.append(Received(event, None))
