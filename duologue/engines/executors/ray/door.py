"""How the engine comes to a worker on another machine: two connections, each to somebody proved.

Whoever was told the secret of this one worker gets in, and the engine sees as well that it has come
to the right place. What follows is not encrypted. This module must not know who listens, nor why.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from contextlib import suppress
from enum import Enum

from duologue.core.clock import Clock
from duologue.core.errors import EngineError
from duologue.core.proof import CHALLENGE_BYTES, PROOF_BYTES, is_proved, prove

ONE_CALLER_S = 2.0
"""Time in which whoever comes to a door must have proved that it is meant."""

_AT_THE_DOOR = b"duologue worker, door"
_COMING = b"duologue worker, caller"
_IDLE_S, _BETWEEN_S, _PROBES = 2, 1, 5
"""A peer is asked for a sign of life after so long, then so often, and is lost after so many."""


class Purpose(Enum):
    """What a connection is for; its value is what the caller says first."""

    LINK = b"L"
    """Frames, both ways."""

    OUTPUT = b"O"
    """What the worker prints."""


async def come_in(host: str, port: int, secret: bytes, purpose: Purpose) -> socket.socket:
    """Connect to a worker's door.

    Raises:
        EngineError: Nobody is there, or somebody who does not know the secret.
    """
    loop = asyncio.get_running_loop()
    line = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        line.setblocking(False)
        await loop.sock_connect(line, (host, port))
        watch(line)
        own = secrets.token_bytes(CHALLENGE_BYTES)
        await loop.sock_sendall(line, purpose.value + own)
        answer = b""
        while len(answer) < CHALLENGE_BYTES + PROOF_BYTES:
            piece = await loop.sock_recv(line, CHALLENGE_BYTES + PROOF_BYTES - len(answer))
            if not piece:
                raise EngineError(f"the worker at {host}:{port} let nobody in")
            answer += piece
        asked, proof = answer[:CHALLENGE_BYTES], answer[CHALLENGE_BYTES:]
        if not is_proved(proof, secret, _AT_THE_DOOR + purpose.value, own, asked):
            raise EngineError(f"who listens at {host}:{port} is not the worker that was placed")
        await loop.sock_sendall(line, prove(secret, _COMING + purpose.value, asked, own))
    except OSError as exc:
        line.close()
        raise EngineError(f"the worker at {host}:{port} cannot be reached: {exc}") from exc
    except BaseException:
        line.close()
        raise
    return line


def open_door(host: str) -> socket.socket:
    """Listen on a port of the system's choice."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family, backlog=8)


def let_in(
    door: socket.socket, secret: bytes, clock: Clock, timeout_s: float
) -> dict[Purpose, socket.socket]:
    """Wait until the engine has come for each purpose, and send others away.

    Blocks. The sockets are blocking ones.

    Raises:
        TimeoutError: It did not come.
    """
    deadline = clock.now() + timeout_s
    inside: dict[Purpose, socket.socket] = {}
    try:
        while len(inside) < len(Purpose):
            door.settimeout(max(0.001, deadline - clock.now()))
            line, _ = door.accept()
            line.settimeout(ONE_CALLER_S)
            purpose = None
            with suppress(OSError):
                purpose = _purpose_of(line, secret)
            if purpose is None or purpose in inside:
                line.close()
                continue
            line.settimeout(None)
            watch(line)
            inside[purpose] = line
    except TimeoutError:
        for line in inside.values():
            line.close()
        raise
    return inside


def watch(line: socket.socket) -> None:
    """Let the system notice when the machine at the other end is gone, and send without delay."""
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_S)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _BETWEEN_S)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
    # The same for bytes that nobody acknowledges, while there are some.
    lost_after_ms = 1000 * (_IDLE_S + _PROBES * _BETWEEN_S)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, lost_after_ms)


def _purpose_of(line: socket.socket, secret: bytes) -> Purpose | None:
    hello = _receive(line, 1 + CHALLENGE_BYTES)
    known = {each.value: each for each in Purpose}
    purpose = known.get(hello[:1])
    if purpose is None or len(hello) != 1 + CHALLENGE_BYTES:
        return None
    asked, own = hello[1:], secrets.token_bytes(CHALLENGE_BYTES)
    line.sendall(own + prove(secret, _AT_THE_DOOR + purpose.value, asked, own))
    proof = _receive(line, PROOF_BYTES)
    return purpose if is_proved(proof, secret, _COMING + purpose.value, own, asked) else None


def _receive(line: socket.socket, count: int) -> bytes:
    # Not a byte more: what follows is for the worker.
    data = b""
    while len(data) < count and (piece := line.recv(count - len(data))):
        data += piece
    return data
