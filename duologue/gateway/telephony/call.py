"""A phone call: a carrier's stream and a session, joined.

What the caller says becomes audio of the session; what the session says is paced out to the
carrier, and its marks tell the session what was heard. This module must not know carriers, HTTP,
nor what is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duologue.core.clock import Clock
from duologue.core.errors import CapacityError, ClientError, RateLimited
from duologue.core.tasks import CrashBarrier
from duologue.core.wheel import TimerWheel
from duologue.gateway.telephony.carrier import (
    CallEnded,
    CallStarted,
    Carrier,
    KeyPressed,
    MarkPlayed,
    Sound,
)
from duologue.gateway.telephony.keypad import Keypad
from duologue.gateway.telephony.playout import Mark, PhonePlayout, Play
from duologue.gateway.telephony.reorder import Reorder
from duologue.gateway.telephony.settings import TelephonySettings
from duologue.gateway.ws.channel import Channel
from duologue.gateway.ws.connection import close_of
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import (
    ClearOutputAudio,
    Command,
    CreateItem,
    CreateResponse,
    ResponseParams,
)
from duologue.protocol.errors import ErrorCode, error_code
from duologue.protocol.events import Event, ItemTruncated
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import AudioDelta, ResponseDone
from duologue.sessions.port import Delivery, Joined
from duologue.sessions.session import CLIENT_GONE
from duologue.telemetry import get_logger

PULL_BYTES = 8 * 1024
MAX_PLAYOUT_MS = 5_000
"""Speech that waits to be played; further speech is left with the session."""

RETRY_S = 0.02
"""How soon a connection that takes nothing is tried again."""

NOT_STARTED = "the carrier did not say what the call is"
_SILENCE = {"audio/pcmu": b"\xff", "audio/pcma": b"\xd5"}

OpenSession = Callable[[CallStarted], tuple[Joined, str]]
"""Opens the session of a call that begins; returns it with what the model is told to say first."""


class PhoneCall:
    """One call; the session's ``Attachment``, and on the wheel.

    Args:
        open_session: Raises ``ClientError`` or ``CapacityError`` where the call may not begin.

    Concurrency:
        Belongs to the event loop; only ``run`` waits.
    """

    def __init__(
        self,
        channel: Channel,
        carrier: Carrier,
        open_session: OpenSession,
        settings: TelephonySettings,
        clock: Clock,
        wheel: TimerWheel,
    ) -> None:
        self._channel = channel
        self._carrier = carrier
        self._open_session = open_session
        self._settings = settings
        self._now = clock.now
        self._wheel = wheel
        self._session: Joined | None = None
        self._stream_id = ""
        self._playout = PhonePlayout(settings.lead_ms / 1000, b"")
        self._order = Reorder()
        self._keypad = Keypad(settings.keypad_pause_s)
        self._starts_by: float | None = clock.now() + settings.start_timeout_s
        self._behind = False
        self._pulling = False
        self._barrier = CrashBarrier(self._crashed)
        self._log = get_logger("gateway").bind(carrier=carrier.name)

    async def run(self) -> None:
        """Hold the call until one of its ends is gone."""
        self._set_timer()
        try:
            try:
                await self._channel.run(self._on_message)
            finally:
                self._hang_up()
            await self._channel.finish()
        finally:
            self._channel.release()
            del self._barrier  # it refers to us, and a circle would outlive the call

    # Attachment

    def on_output(self) -> None:
        """Take what the session has."""
        with self._barrier:
            self._pump()
            self._send_due()

    def on_end(self, reason: str) -> None:
        """The session is over: the connection ends, and with it the call."""
        self._close(*close_of(reason))

    def on_pressure(self, _on: bool) -> None:
        """Nothing: sound comes as fast as somebody speaks, and what is too much is left out."""

    def on_let_go(self, reason: str, last_words: Sequence[Delivery]) -> None:
        """Not heard here, since no such session is resumable; the call would end."""
        self.on_end(reason)

    # On the wheel

    def on_timer(self) -> None:
        """Send what is due, or give up a carrier that says nothing."""
        now = self._now()
        if self._starts_by is not None and now >= self._starts_by:
            self._close(close_of(ErrorCode.INVALID_REQUEST)[0], NOT_STARTED)
            return
        with self._barrier:
            entry = self._keypad.on_timer(now)
            if entry is not None:
                self._typed(entry)
            if self._behind:
                self._pump()
            self._send_due()

    # From the carrier

    def _on_message(self, message: bytes) -> None:
        try:
            said = self._carrier.decode(message)
        except ClientError as exc:
            if self._session is None:
                self._refuse(exc)
            else:
                # One message that cannot be read must not cost the caller the call.
                self._log.warning("phone_message_refused", code=exc.code, param=exc.param)
            return
        match said:
            case Sound(payload=payload, number=None):
                self._offer(AppendAudio(audio=payload))
            case Sound(payload=payload, number=int(number)):
                for frame in self._order.put(number, payload):
                    self._offer(AppendAudio(audio=frame))
            case MarkPlayed(name=name):
                heard = self._playout.mark_played(name)
                if heard is not None and self._session is not None:
                    self._session.played(heard.item_id, heard.played_ms)
            case KeyPressed(key=key):
                entry = self._keypad.press(key, self._now())
                if entry is not None:
                    self._typed(entry)
                self._set_timer()
            case CallStarted() if self._session is None:
                self._begin(said)
            case CallEnded():
                self._close(1000, "")
            case _:
                pass

    def _begin(self, start: CallStarted) -> None:
        try:
            session, greeting = self._open_session(start)
        except (ClientError, CapacityError) as exc:
            self._refuse(exc)
            return
        self._session = session
        self._starts_by = None
        self._stream_id = start.stream_id
        self._playout = PhonePlayout(self._settings.lead_ms / 1000, _SILENCE[start.format])
        session.attach(self)
        if greeting:
            self._offer(CreateResponse(response=ResponseParams(instructions=greeting)))

    def _typed(self, entry: str) -> None:
        """What was typed is something the caller said; who types does not want to listen on."""
        text = f"(The caller typed {entry} on the keypad.)"
        message = MessageItem(role="user", content=(InputText(text=text),))
        for command in (ClearOutputAudio(), CreateItem(item=message), CreateResponse()):
            self._offer(command)

    def _offer(self, command: Command) -> None:
        if self._session is None:
            return
        try:
            self._session.offer(command)
        except ClientError as exc:
            self._log.warning("phone_input_refused", code=exc.code)

    def _refuse(self, exc: ClientError | CapacityError) -> None:
        """The call cannot begin; the carrier's log shows the reason."""
        code = error_code(exc)
        self._log.info("phone_call_refused", code=code)
        again = isinstance(exc, CapacityError | RateLimited)
        self._close(1013 if again else 1008, exc.message if not again else close_of(code)[1])

    # From the session

    def _pump(self) -> None:
        session = self._session
        if self._pulling or session is None:
            self._behind = True
            return
        self._pulling = True
        try:
            self._behind = True
            while self._playout.waiting_ms < MAX_PLAYOUT_MS:
                batch = session.pull(PULL_BYTES)
                for delivery in batch.deliveries:
                    self._take(delivery.event)
                if not batch.more:
                    self._behind = False
                    return
        finally:
            self._pulling = False

    def _take(self, event: Event) -> None:
        playout = self._playout
        match event:
            case AudioDelta(response_id=response_id, item_id=item_id, delta=payload):
                playout.append(response_id, item_id, payload)
            case ResponseDone(response=response) if response.status == "cancelled":
                self._silence(playout.stop(response.id))
            case ResponseDone(response=response):
                playout.complete(response.id)
            case ItemTruncated(item_id=item_id):
                self._silence(playout.cut(item_id))
            case _:
                pass  # there is nobody who would read it

    def _silence(self, carrier_holds_some: bool) -> None:
        if carrier_holds_some and self._channel.can_send():
            self._channel.send(self._carrier.clear(self._stream_id))

    def _send_due(self) -> None:
        channel, carrier = self._channel, self._carrier
        if channel.can_send():
            for step in self._playout.due(self._now()):
                match step:
                    case Play(payload=payload):
                        channel.send(carrier.sound(self._stream_id, payload))
                    case Mark(name=name):
                        channel.send(carrier.mark(self._stream_id, name))
        self._set_timer()

    # Time, and the end

    def _set_timer(self) -> None:
        now = self._now()
        playout_at = self._playout.next_deadline()
        if playout_at is not None and not self._channel.can_send():
            playout_at = now + RETRY_S
        pull_at = now + RETRY_S if self._behind and self._session is not None else None
        moments = (self._starts_by, self._keypad.next_deadline(), playout_at, pull_at)
        due = [at for at in moments if at is not None]
        self._wheel.set(self, max(min(due), now) if due else None)

    def _close(self, code: int, reason: str) -> None:
        self._starts_by = None
        self._channel.close(code, reason)

    def _hang_up(self) -> None:
        session, self._session = self._session, None
        self._starts_by = None
        self._wheel.set(self, None)
        if session is not None:
            session.close(CLIENT_GONE)

    def _crashed(self, exc: Exception) -> None:
        """A bug of ours: the call ends, others never notice."""
        self._log.error("phone_call_crashed", exc_info=exc)
        self._close(*close_of(ErrorCode.SERVER_ERROR))
