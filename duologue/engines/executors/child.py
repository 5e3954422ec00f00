"""A child process that has one end of a socket pair: its start, what it prints, its end.

This module must not know what the child is for.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

from duologue.engines.executors.linked import Lines


class Child(asyncio.SubprocessProtocol):
    """A process, from its start until it is let go.

    Args:
        hear: Takes each line that it prints.

    Concurrency:
        Belongs to the event loop.
    """

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._exited = asyncio.Event()
        self._lines = Lines(hear)
        self._process: asyncio.SubprocessTransport | None = None

    @property
    def runs(self) -> bool:
        """It was started and has not ended."""
        return self._process is not None and not self._exited.is_set()

    async def start(
        self,
        program: Sequence[str],
        link: socket.socket,
        env: Mapping[str, str],
        options: Sequence[str] = (),
        more_fds: Sequence[int] = (),
    ) -> None:
        """Start it in a session of its own.

        It is started by the thread of the loop, since the system kills it with that thread.

        Args:
            program: Gets the number of its link's descriptor, the number of this process, and
                ``options``.
            more_fds: Descriptors that it inherits beside its link.

        Raises:
            OSError: The program cannot be run.
        """
        await asyncio.get_running_loop().subprocess_exec(
            lambda: self,
            *program,
            *(str(link.fileno()), str(os.getpid())),
            *options,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(link.fileno(), *more_fds),
            start_new_session=True,
            env=env,
        )

    async def ended(self) -> None:
        """Wait for its end; one that was never started has none."""
        if self.runs:
            await self._exited.wait()

    def kill(self) -> None:
        """Kill it; the news of its end follows."""
        if self._process is not None and self.runs:
            with suppress(ProcessLookupError):  # it is dead, and the news is on its way
                self._process.kill()

    def release(self) -> None:
        """Hear no more of it, and refer to it no longer."""
        if self._process is not None:
            self._process.close()
            self._process = None

    # asyncio.SubprocessProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        self._process = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It prints."""
        self._lines.feed(data)

    def process_exited(self) -> None:
        """It has ended."""
        self._exited.set()
