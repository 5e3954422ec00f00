"""What a client has sent and the server may not have: for the next connection.

Audio is told by its place, commands by their ids. TCP keeps the order, so what the server has is
always a beginning of it all. This module must not know connections or what commands mean.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import msgspec

from duologue.codecs.wire_length import wire_samples
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.audio_formats import AudioFormat, format_rate_hz
from duologue.protocol.commands import Command
from duologue.protocol.duplex.commands import (
    AcknowledgeEvents,
    AcknowledgePlayback,
    Heartbeat,
    ShowFrame,
)
from duologue.protocol.limits import MAX_INPUT_GAP_MS

COMMANDS = 512
"""Other commands, of which the server does not say that it has them."""

_MOMENTARY = (AcknowledgeEvents, AcknowledgePlayback, Heartbeat, ShowFrame)
"""Are worth nothing later: what they say, or show, comes anew."""


@dataclass(slots=True)
class _Entry:
    """One message: ``command`` is what to send again, if it must be; ``end`` belongs to audio."""

    command: Command | None
    event_id: str | None
    end: int | None = None
    samples: int = 0
    bytes: int = 0


class SentLog:
    """What was sent, oldest first, from what the server is not known to have.

    Args:
        audio_bytes: Audio that is kept; past that the oldest is dropped. Servers say every second
            how far they have it.
        commands: The same for all else.

    Units:
        Places count samples at the rate of the wire.
    """

    def __init__(self, audio_bytes: int, commands: int = COMMANDS) -> None:
        self.held_bytes = 0
        """Audio that is kept."""

        self.dropped_samples = 0
        """Audio that nobody can send again any more, and that the server did not say it had."""

        self._max_bytes = audio_bytes
        self._max_commands = commands
        self._entries: deque[_Entry] = deque()
        self._commands = 0
        self._end: int | None = None
        """The place behind the latest audio, as the server counts."""
        self._shift = 0

    def __len__(self) -> int:
        return len(self._entries)

    def note(self, command: Command, wire: AudioFormat) -> Command:
        """Keep what is sent now; returns it as it is to be sent.

        Audio after a hole that is longer than the server would wait for is moved up: what the
        buffer could not hold is gone in any case.
        """
        if isinstance(command, AppendPlacedAudio) and command.start_sample is not None:
            return self._note_audio(command, command.start_sample, wire)
        if isinstance(command, AppendAudio):
            return command  # nobody could tell which part of it has come
        kept = None if isinstance(command, _MOMENTARY) else command
        last = self._entries[-1] if self._entries else None
        if kept is None and last is not None and last.command is None:
            last.event_id = command.event_id
            return command
        self._entries.append(_Entry(kept, command.event_id))
        self._commands += 1
        if self._commands > self._max_commands:
            self._drop_oldest(audio=False)
        return command

    def confirm_audio(self, next_sample: int) -> None:
        """The server has the audio before a place, and so all that was sent before it."""
        confirmed = 0
        for index, entry in enumerate(self._entries):
            if entry.end is None:
                continue
            if entry.end > next_sample:
                break
            confirmed = index + 1
        self._forget(confirmed)

    def confirm_command(self, event_id: str) -> None:
        """The server has a command, and so all that was sent before it."""
        for index in range(len(self._entries) - 1, -1, -1):
            if self._entries[index].event_id == event_id:
                self._forget(index + 1)
                return

    def confirm_first(self) -> None:
        """The server has the first message."""
        self._forget(min(1, len(self._entries)))

    def to_send_again(self) -> list[Command]:
        """Return what is not confirmed, in order. It stays until it is."""
        return [entry.command for entry in self._entries if entry.command is not None]

    def _note_audio(self, command: AppendPlacedAudio, start: int, wire: AudioFormat) -> Command:
        longest = MAX_INPUT_GAP_MS * format_rate_hz(wire) // 1000
        start -= self._shift
        if self._end is not None and start - self._end > longest:
            self._shift += start - self._end - longest
            start = self._end + longest
        if start != command.start_sample:
            command = msgspec.structs.replace(command, start_sample=start)
        samples = wire_samples(command.audio, wire)
        self._end = start + samples
        size = len(command.audio)
        self._entries.append(_Entry(command, None, self._end, samples, size))
        self.held_bytes += size
        while self.held_bytes > self._max_bytes:
            self.dropped_samples += self._drop_oldest(audio=True)
        return command

    def _drop_oldest(self, *, audio: bool) -> int:
        """Drop the oldest of a kind; returns how much audio that was."""
        for index, entry in enumerate(self._entries):
            if (entry.end is not None) is audio:
                del self._entries[index]
                self._release(entry)
                return entry.samples
        return 0

    def _forget(self, count: int) -> None:
        for _ in range(count):
            self._release(self._entries.popleft())

    def _release(self, entry: _Entry) -> None:
        if entry.end is None:
            self._commands -= 1
        else:
            self.held_bytes -= entry.bytes
