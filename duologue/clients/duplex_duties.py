"""What a client of the duplex dialect owes its server: acknowledgements and signs of life.

Nothing is said for each event or frame: what is new is gathered, and said a few times a second.
This module must not know sockets, devices or clocks.
"""

from __future__ import annotations

from duologue.clients.machine import EventOrUnknown
from duologue.clients.playback import Playback
from duologue.codecs.wire_length import wire_samples
from duologue.core.audio import samples_to_ms
from duologue.protocol.audio_formats import AudioFormat
from duologue.protocol.commands import Command
from duologue.protocol.duplex.commands import AcknowledgeEvents, AcknowledgePlayback, Heartbeat
from duologue.protocol.events import ErrorEvent

INTERVAL_S = 0.2
"""How often ``due`` is to be asked."""

HEARTBEAT_S = 15.0
"""Silence after which the server is told that somebody is there: half of what servers expect."""


class DuplexDuties:
    """The duties of one call.

    Args:
        playback: What the loudspeaker takes from.
    """

    def __init__(self, playback: Playback, now: float) -> None:
        self._playback = playback
        self._received = 0
        self._acknowledged = 0
        self._played_ms: dict[str, int] = {}
        """What was acknowledged of each item, while it is remembered."""
        self._acks: dict[str, str] = {}
        """Items by the id of the command that acknowledged them last."""
        self._not_there: set[str] = set()
        """Items that the server does not know: they are in no conversation."""
        self._numbers = 0
        self._spoke_at = now
        self._format: AudioFormat | None = None
        self._position: int | None = 0

    def accepts(self, seq: int | None) -> bool:
        """Tell whether an event is new: after a lost connection some may come twice."""
        return seq is None or seq == 0 or seq > self._received

    def on_event(self, event: EventOrUnknown, seq: int | None) -> None:
        """Note an event of the server."""
        if seq is not None:
            self._received = max(self._received, seq)
        if isinstance(event, ErrorEvent) and event.error.event_id is not None:
            item_id = self._acks.get(event.error.event_id)
            if item_id is not None:
                self._not_there.add(item_id)

    def begin_again(self, *, anew: bool) -> None:
        """Another connection: what was said on the one before may not have arrived.

        Args:
            anew: It leads to another session, whose events are numbered from the start.
        """
        self._acknowledged = 0
        self._played_ms.clear()
        if anew:
            self._received = 0

    def spoke(self, now: float) -> None:
        """Note that something is sent."""
        self._spoke_at = now

    def place(self, wire: bytes, wire_format: AudioFormat) -> int | None:
        """Return where audio belongs that is sent next, in samples since the beginning.

        ``None`` after a change of format: a place is counted at one rate.
        """
        if self._format is None:
            self._format = wire_format
        if wire_format != self._format:
            self._position = None
        start = self._position
        if start is not None:
            self._position = start + wire_samples(wire, wire_format)
        return start

    def due(self, unsounded_samples: int, now: float) -> list[Command]:
        """Return what is to be said now.

        Args:
            unsounded_samples: What the loudspeaker has taken, and nobody has heard yet.
        """
        commands: list[Command] = []
        if self._received > self._acknowledged:
            self._acknowledged = self._received
            commands.append(AcknowledgeEvents(server_event_seq=self._received))
        commands += self._playback_acks(unsounded_samples)
        if not commands and now - self._spoke_at >= HEARTBEAT_S:
            commands.append(Heartbeat())
        return commands

    def _playback_acks(self, unsounded_samples: int) -> list[Command]:
        acks: list[Command] = []
        heard = self._playback.sounded(unsounded_samples)
        for item_id, samples in heard.items():
            played_ms = samples_to_ms(samples, self._playback.rate_hz)
            if item_id in self._not_there or played_ms <= self._played_ms.get(item_id, 0):
                continue
            self._played_ms[item_id] = played_ms
            self._numbers += 1
            command_id = f"played_{self._numbers}"
            self._acks[command_id] = item_id
            acks.append(
                AcknowledgePlayback(event_id=command_id, item_id=item_id, played_ms=played_ms)
            )
        self._forget(heard)
        return acks

    def _forget(self, remembered: dict[str, int]) -> None:
        """Forget what playback has forgotten; of each item, only the last word may be refused."""
        if len(self._acks) > 2 * len(remembered) + 8:
            latest = {item_id: command_id for command_id, item_id in self._acks.items()}
            self._acks = {c: item_id for item_id, c in latest.items() if item_id in remembered}
            self._played_ms = {i: ms for i, ms in self._played_ms.items() if i in remembered}
            self._not_there &= remembered.keys()
