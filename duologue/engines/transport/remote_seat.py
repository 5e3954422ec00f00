"""What a worker is told of a transport between hosts: where it is, and what all know who may read.

It goes through a pipe that the worker inherits, never over the network: it holds the secret. This
module must not know how payloads are read.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import BinaryIO

import msgspec

from duologue.core.clock import Clock
from duologue.core.errors import EngineError
from duologue.core.installation import install_command
from duologue.engines.transport.choice import NIXL
from duologue.engines.transport.port import Reader, Store

WITH_SEAT = "seat"
"""Tells a worker that it will read of a seat; the pipe's descriptor follows."""

READ_TIMEOUT_S = 10.0
"""Time in which a payload must have come, from when nothing else is read before it."""


class RemoteSeat(msgspec.Struct, frozen=True, array_like=True):
    """One end of a worker's link, the worker's own or the engine's.

    Args:
        kind: ``zeromq`` or ``nixl``.
        host: The address of its machine, by which others find it.
        secret: Of all ends of an executor.
        name: No other one has the same.
        max_bytes: What may lie there and be unread.
        first_generation: No end before it had this, or the next ones.
    """

    kind: str
    host: str
    secret: bytes
    name: str
    max_bytes: int
    first_generation: int

    @property
    def reader(self) -> str:
        """As its reader calls itself to those who write."""
        return f"{self.name} reads"

    def open_store(self) -> Store:
        """Make the writer's end.

        Raises:
            EngineError: A package is missing, or the address cannot be listened at.
        """
        _check_installed(self.kind)
        if self.kind == NIXL:
            from duologue.engines.transport.nixl import NixlStore

            return NixlStore(
                f"{self.name} writes",
                self.host,
                0,
                secret=self.secret,
                max_bytes=self.max_bytes,
                first_generation=self.first_generation,
            )
        from duologue.engines.transport.zeromq import ZeromqStore

        return ZeromqStore(
            self.host,
            0,
            secret=self.secret,
            max_bytes=self.max_bytes,
            first_generation=self.first_generation,
        )

    def open_reader(self, clock: Clock) -> Reader:
        """Make the reader of all other ends; for the thread that will read.

        Raises:
            EngineError: A package is missing.
        """
        _check_installed(self.kind)
        if self.kind == NIXL:
            from duologue.engines.transport.nixl import NixlReader

            return NixlReader(
                self.reader, secret=self.secret, max_bytes=self.max_bytes, clock=clock
            )
        from duologue.engines.transport.zeromq import ZeromqReader

        return ZeromqReader(secret=self.secret, clock=clock)


def pass_seat(seat: RemoteSeat) -> BinaryIO:
    """Return the end of a pipe in which whoever inherits it can read of the seat."""
    theirs, ours = os.pipe()
    try:
        os.set_blocking(ours, False)  # some hundred bytes find room in a pipe that nobody reads
        os.write(ours, msgspec.msgpack.encode(seat))
    finally:
        os.close(ours)
    return open(theirs, "rb")


def inherit_seat(fd: int) -> RemoteSeat:
    """Read of the seat, and close the pipe."""
    with open(fd, "rb") as pipe:
        return msgspec.msgpack.decode(pipe.read(), type=RemoteSeat)


def _check_installed(kind: str) -> None:
    if find_spec("zmq") is None:
        raise EngineError(
            f"the transport {kind!r} needs a package that is not installed here: "
            f"{install_command(f'duologue[{kind}]')}; or give the stage the transport 'link'"
        )
