"""Commands on their way to the transport: in order, bounded, and never waited for by the caller.

This module must not know transports or what commands mean.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from duologue.clients.errors import SendBufferFull
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import Command
from duologue.protocol.duplex.commands import ShowFrame

AUDIO_BYTES = 1 << 20
"""20 s of 24 kHz PCM: enough to hand over a sentence at once, too little to be minutes late."""

COMMANDS = 1024
"""Other commands that may wait."""

FRAMES = 4
"""Frames of a camera that may wait: a newer one says more, so the oldest goes."""


class Outbox:
    """First in, first out.

    Concurrency:
        Belongs to the event loop; one task takes.
    """

    def __init__(self, audio_bytes: int = AUDIO_BYTES, commands: int = COMMANDS) -> None:
        self._audio_capacity = audio_bytes
        self._command_capacity = commands
        self._waiting: deque[Command] = deque()
        self._audio_bytes = 0
        self._commands = 0
        self._shed: tuple[int, Callable[[AppendAudio], None]] | None = None
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def audio_bytes(self) -> int:
        """Audio that waits."""
        return self._audio_bytes

    def put(self, command: Command) -> None:
        """Add a command.

        Raises:
            SendBufferFull: There is no room; nothing was kept.
        """
        if isinstance(command, AppendAudio):
            if self._shed is not None:
                self._make_room(len(command.audio), *self._shed)
            size = self._audio_bytes + len(command.audio)
            if size > self._audio_capacity:
                raise SendBufferFull(
                    f"{size} bytes of audio would wait to be sent, the limit is "
                    f"{self._audio_capacity}. Send it as it is spoken, or wait with drain()."
                )
            self._audio_bytes = size
        else:
            if isinstance(command, ShowFrame):
                self._make_room_for_frame()
            if self._commands >= self._command_capacity:
                raise SendBufferFull(
                    f"{self._commands} commands wait to be sent, which is the limit; "
                    "the server reads too slowly"
                )
            self._commands += 1
        self._waiting.append(command)
        self._empty.clear()
        self._news.set()

    async def take(self) -> Command:
        """Remove and return the oldest command, once there is one."""
        while not self._waiting:
            self._empty.set()
            self._news.clear()
            await self._news.wait()
        command = self._waiting.popleft()
        if isinstance(command, AppendAudio):
            self._audio_bytes -= len(command.audio)
        else:
            self._commands -= 1
        return command

    async def drained(self) -> None:
        """Wait until the transport has taken everything."""
        await self._empty.wait()

    def shed_oldest(self, kept_bytes: int, tell: Callable[[AppendAudio], None]) -> None:
        """Let the oldest audio go from now on where there is no room, instead of the latest.

        Args:
            kept_bytes: Audio that may wait.
            tell: Is told of what goes.
        """
        self._shed = min(kept_bytes, self._audio_capacity), tell

    def shed_nothing(self) -> None:
        """Refuse what has no room."""
        self._shed = None

    def _make_room(self, size: int, kept_bytes: int, tell: Callable[[AppendAudio], None]) -> None:
        excess = self._audio_bytes + size - kept_bytes
        if excess <= 0:
            return
        kept: deque[Command] = deque()
        while excess > 0 and self._waiting:
            oldest = self._waiting.popleft()
            if isinstance(oldest, AppendAudio):
                self._audio_bytes -= len(oldest.audio)
                excess -= len(oldest.audio)
                tell(oldest)
            else:
                kept.append(oldest)
        self._waiting.extendleft(reversed(kept))

    def _make_room_for_frame(self) -> None:
        waiting = [index for index, each in enumerate(self._waiting) if isinstance(each, ShowFrame)]
        if len(waiting) >= FRAMES:
            del self._waiting[waiting[0]]
            self._commands -= 1

    def close(self) -> None:
        """Drop what waits: nobody will take it."""
        self._waiting.clear()
        self._audio_bytes = self._commands = 0
        self._empty.set()
