"""A call over WebRTC: a session, a peer connection, and the media clock between them.

Sound in goes to the session as it comes. What the session says is played here, 20 ms at a time, so
the session is told exactly what was heard; all other events go to the data channel and to whoever
looks on. This module must not know a WebRTC library, nor HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from duologue.core.clock import Clock
from duologue.core.errors import ClientError
from duologue.core.mailbox import MailboxFull
from duologue.core.tasks import CrashBarrier
from duologue.core.wheel import TimerWheel
from duologue.gateway.webrtc.answer import seen_from_outside
from duologue.gateway.webrtc.audio_out import (
    AUDIO_OUT_HZ,
    FRAME_BYTES,
    FRAME_MS,
    FrameEncoder,
)
from duologue.gateway.webrtc.commands import check_command
from duologue.gateway.webrtc.event_queue import ChannelWriter, Observer
from duologue.gateway.webrtc.offer import Offer
from duologue.gateway.webrtc.peer import Backend, Peer
from duologue.gateway.webrtc.playout import Playout
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import Command
from duologue.protocol.dialect import Dialect
from duologue.protocol.errors import ErrorCode, error_body
from duologue.protocol.events import (
    Event,
    ItemTruncated,
    OutputBufferCleared,
    OutputBufferStarted,
    OutputBufferStopped,
    SessionCreated,
    SessionUpdated,
)
from duologue.protocol.json_codec import REALTIME_JSON
from duologue.protocol.response_events import AudioDelta, ResponseDone
from duologue.protocol.session_config import AnySession
from duologue.sessions.port import Delivery, Joined
from duologue.telemetry import get_logger

PULL_BYTES = 8 * 1024
MAX_PLAYOUT_MS = 5_000
"""Speech that waits to be played; further speech is left with the session."""

MAX_BURST_FRAMES = 5
"""Frames sent at once after a stall of the loop; what is further behind is left out."""

FRAME_S = FRAME_MS / 1000
FLUSH_S = 1.0
"""How long the last events of a call may take to leave."""

_LOOK_S = 0.02


class Call:
    """One call; the session's ``Attachment``, the peer's ``PeerListener``, and on the wheel.

    Life: ``answer`` once, ``run`` until it is over.

    Args:
        goes_on: With the session of a call before this one.
        left: What a call before this one, with the same session, had still to play.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(
        self,
        call_id: str,
        offer: Offer,
        session: Joined,
        settings: WebRtcSettings,
        clock: Clock,
        wheel: TimerWheel,
        dialect: Dialect = REALTIME_JSON,
        left: Playout | None = None,
        goes_on: bool = False,
    ) -> None:
        self.id = call_id
        self.offer = offer
        self.session = session
        self.resource: AnySession | None = None
        """What is in force, once the session has said it."""
        self._settings = settings
        self._now = clock.now
        self._wheel = wheel
        self._dialect = dialect
        self._decode = dialect.decode_command
        self._barrier = CrashBarrier(self.crashed)
        self._peer: Peer | None = None
        self._writer: ChannelWriter | None = None
        self._observers: list[Observer] = []
        audio = offer.audio
        self._encoder = None if audio is None else FrameEncoder(audio.codec, settings)
        self.playout: Playout | None = None
        """What is still to be played; ``None``: nothing is ever."""

        if audio is not None:
            self.playout = left or Playout(FRAME_BYTES, AUDIO_OUT_HZ)
        self.goes_on = goes_on
        self.waits = False
        """The connection is lost, and the session may go on in another call."""

        self._frames = 0
        self._playing_since: float | None = None
        self._lost_until: float | None = None
        self._connected = asyncio.Event()
        self._over = asyncio.Event()
        self._ready = False
        self._behind = False
        self._pulling = False
        self._reason: str | None = None
        self.refused_audio = 0
        """Pieces of audio that the session had no room for."""

    async def answer(self, backend: Backend, group: asyncio.TaskGroup) -> str:
        """Return the answer to the offer; raises ``ClientError``."""
        peer = self._peer = backend.make_peer(self, group)
        self._writer = ChannelWriter(peer, self._dialect, self.offer.max_message_bytes)
        sdp = await peer.answer(self.offer)
        self.session.attach(self)
        return seen_from_outside(sdp, self._settings.public_address)

    async def run(self) -> None:
        """Hold the call until it is over, and let go of everything."""
        try:
            try:
                async with asyncio.timeout(self._settings.connect_timeout_s):
                    await self._connected.wait()
            except TimeoutError:
                get_logger("gateway").info("webrtc_peer_not_connected", call_id=self.id)
                self._give_up()
            await self._over.wait()
            await self._flush()
        finally:
            await self.release()

    def _give_up(self) -> None:
        """Nobody has connected; a session that another call had before may still be waited for."""
        if self.goes_on:
            self.waits = True
            self.session.detach(self)
        self.end(ErrorCode.PEER_NOT_CONNECTED)

    async def release(self) -> None:
        """Drop the connection, whatever state the call is in."""
        self.end("closed")
        self._wheel.set(self, None)
        peer, self._peer, self._writer = self._peer, None, None
        if peer is not None:
            await peer.close()

    def end(self, reason: str) -> None:
        """End the session, and so the call."""
        if not self.waits:
            self.session.close(reason)
        self._finish(reason)

    def observe(self) -> Observer:
        """Let somebody look on: events as on the data channel, commands as from there."""
        observer = Observer(self.id, self.accept, self._observers.remove)
        self._observers.append(observer)
        if self.resource is not None:
            observer.put(SessionCreated(session=self.resource))
        return observer

    def accept(self, command: Command) -> None:
        """Take a command from the caller or from one who looks on.

        Raises:
            ClientError: It was refused, and nothing changed.
        """
        check_command(command, has_track=self.playout is not None)
        self.session.offer(command)

    # Attachment

    def on_output(self) -> None:
        """Take what the session has."""
        with self._barrier:
            self._pump()

    def on_end(self, reason: str) -> None:
        """The session is over: what it said last goes out, then the connection."""
        with self._barrier:
            self._pump()
        self._finish(reason)

    def on_pressure(self, _on: bool) -> None:
        """Nothing: sound comes as fast as somebody speaks, and what is too much is left out."""

    def on_let_go(self, reason: str, last_words: Sequence[Delivery]) -> None:
        """Another call goes on with the session, and plays what is left."""
        self.waits = True
        self._finish(reason)

    # PeerListener

    def on_connected(self) -> None:
        """Audio may flow."""
        was_lost, self._lost_until = self._lost_until is not None, None
        self._connected.set()
        if self.playout is not None and self._playing_since is None:
            self._playing_since = self._now()
        if self.offer.data_mid is None:
            self._begin()
        elif was_lost:
            self.on_output()
        self._set_timer()

    def on_channel_open(self) -> None:
        """Events may flow."""
        self._begin()

    def on_lost(self) -> None:
        """Wait a while for the peer to come back."""
        self._lost_until = self._now() + self._settings.disconnect_timeout_s
        self._set_timer()

    def on_message(self, message: bytes) -> None:
        """Take a command."""
        with self._barrier:
            try:
                self.accept(self._decode(message))
            except ClientError as exc:
                self.session.reject(error_body(exc))

    def on_drained(self) -> None:
        """Write what waits, and take what the session has kept back meanwhile."""
        if self._writer is not None:
            self._writer.flush()
            self.on_output()

    def on_audio(self, pcm: bytes) -> None:
        """Hand sound to the session."""
        try:
            self.session.offer(AppendAudio(audio=pcm))
        except MailboxFull:
            self.refused_audio += 1

    def on_gone(self, reason: str) -> None:
        """The peer has left, or never came."""
        get_logger("gateway").info("webrtc_peer_gone", call_id=self.id, state=reason)
        self.waits = True
        self.session.detach(self)
        self._finish(reason)

    # On the wheel

    def on_timer(self) -> None:
        """Play what is due."""
        now = self._now()
        if self._lost_until is not None and now >= self._lost_until:
            self.on_gone("lost")
            return
        with self._barrier:
            self._play(now)
        self._set_timer()

    def _play(self, now: float) -> None:
        if self._playing_since is None or self._peer is None or self._lost_until is not None:
            return  # what nobody hears now may be heard when the peer is back
        due = int((now - self._playing_since) / FRAME_S)
        self._frames = max(self._frames, due - MAX_BURST_FRAMES)
        # Compared as it was set: another way of working it out may round to the other side.
        while now >= self._frame_at(self._playing_since):
            self._play_frame(self._peer)
        if self._behind:
            self._pump()

    def _play_frame(self, peer: Peer) -> None:
        playout, encoder = self.playout, self._encoder
        assert playout is not None
        assert encoder is not None
        frame = playout.next_frame()
        peer.send_audio(encoder.encode(frame.pcm), self._frames * encoder.step)
        self._frames += 1
        if frame.item_id:
            self.session.played(frame.item_id, frame.played_ms)
        if frame.started is not None:
            self._emit(OutputBufferStarted(response_id=frame.started))
        if frame.stopped is not None:
            self._emit(OutputBufferStopped(response_id=frame.stopped))

    def _frame_at(self, playing_since: float) -> float:
        """When the next frame is due; worked out anew, so that rounding does not add up."""
        return playing_since + (self._frames + 1) * FRAME_S

    def _set_timer(self) -> None:
        due = self._lost_until
        if due is None and self._playing_since is not None:
            due = self._frame_at(self._playing_since)
        self._wheel.set(self, None if self._over.is_set() else due)

    # From the session

    def _begin(self) -> None:
        self._ready = True
        self.on_output()
        if self.playout is not None and self.playout.sounding is not None:
            self._emit(OutputBufferStarted(response_id=self.playout.sounding))

    def _pump(self) -> None:
        if not self._ready or self._pulling or self._writer is None:
            self._behind = True
            return
        self._pulling = True
        try:
            self._behind = True
            while self._has_room():
                batch = self.session.pull(PULL_BYTES)
                for delivery in batch.deliveries:
                    self._take(delivery.event)
                if not batch.more:
                    self._behind = False
                    return
        finally:
            self._pulling = False

    def _has_room(self) -> bool:
        if self._writer is None or self._writer.is_full or self._lost_until is not None:
            return False
        return self.playout is None or self.playout.waiting_ms < MAX_PLAYOUT_MS

    def _take(self, event: Event) -> None:
        playout = self.playout
        if playout is None:
            self._emit(event)
            return
        match event:
            case AudioDelta(response_id=response_id, item_id=item_id, delta=pcm):
                playout.append(response_id, item_id, pcm)
            case ResponseDone(response=response) if response.status == "cancelled":
                was_heard = playout.clear(response.id)
                self._emit(event)
                if was_heard:
                    self._emit(OutputBufferCleared(response_id=response.id))
            case ResponseDone(response=response):
                playout.complete(response.id)
                self._emit(event)
            case ItemTruncated(item_id=item_id, audio_end_ms=end_ms):
                cut_off = playout.cut(item_id, end_ms)
                self._emit(event)
                if cut_off is not None:
                    self._emit(OutputBufferCleared(response_id=cut_off))
            case _:
                self._emit(event)

    def _emit(self, event: Event) -> None:
        if isinstance(event, SessionCreated | SessionUpdated):
            self.resource = event.session
        if self._writer is not None:
            self._writer.put(event)
        for observer in tuple(self._observers):
            observer.put(event)

    # The end

    def _finish(self, reason: str) -> None:
        if self._over.is_set():
            return
        self._reason = reason
        self._playing_since = self._lost_until = None
        self._wheel.set(self, None)
        self._connected.set()
        self._over.set()
        for observer in tuple(self._observers):
            observer.close(reason)

    async def _flush(self) -> None:
        """Let the last events leave: a connection that is closed drops them."""
        deadline = self._now() + FLUSH_S
        writer = self._writer
        while writer is not None and not writer.is_empty and self._now() < deadline:
            writer.flush()
            await asyncio.sleep(_LOOK_S)

    def crashed(self, exc: Exception) -> None:
        """A bug of ours: the call ends, others never notice."""
        get_logger("gateway").error("webrtc_call_crashed", exc_info=exc)
        self.end(ErrorCode.SERVER_ERROR)
