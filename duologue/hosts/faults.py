"""Exceptions of ours across a link: raised at one end, raised again at the other.

This module must not know what failed.
"""

from __future__ import annotations

from duologue.core.errors import (
    AuthError,
    CapacityError,
    ClientError,
    DuologueError,
    EngineError,
    LimitExceeded,
    ProtocolError,
    RateLimited,
    UnknownSession,
)
from duologue.hosts.link_struct import Fault
from duologue.protocol.errors import ErrorCode

_CLIENTS = {
    kind.__name__: kind
    for kind in (ClientError, AuthError, LimitExceeded, ProtocolError, UnknownSession)
}
_BUSY = {kind.__name__: kind for kind in (CapacityError, RateLimited)}


def fault_of(exc: DuologueError) -> Fault:
    """Write an exception."""
    kind = next(
        (one.__name__ for one in type(exc).__mro__ if one.__name__ in {*_CLIENTS, *_BUSY}),
        EngineError.__name__ if isinstance(exc, EngineError) else DuologueError.__name__,
    )
    return Fault(
        kind=kind,
        code=exc.code,
        message=exc.message,
        param=getattr(exc, "param", None),
        retry_after_s=getattr(exc, "retry_after_s", 0.0),
    )


def exception_of(fault: Fault) -> DuologueError:
    """Read an exception."""
    if fault.kind in _BUSY:
        return _BUSY[fault.kind](fault.message, code=fault.code, retry_after_s=fault.retry_after_s)
    if fault.kind in _CLIENTS:
        return _CLIENTS[fault.kind](fault.message, code=fault.code, param=fault.param)
    if fault.kind == EngineError.__name__:
        return EngineError(fault.message, code=fault.code)
    return DuologueError(fault.message, code=fault.code)


def host_lost() -> CapacityError:
    """Return why nothing works while there is no link: another attempt may find one."""
    return CapacityError(
        "the session host cannot be reached", code=ErrorCode.HOST_LOST, retry_after_s=1.0
    )
