"""Every exception of Duologue; whose fault it is, is part of the type.

```text
DuologueError
  ClientError            the peer broke a rule            error event, the session lives
    ProtocolError  AuthError  LimitExceeded  RateLimited  UnknownSession  StaleLease
  CapacityError          we are full                      503 or 1013, retryable
  EngineError            a stage failed                   the response fails, the session lives
    StageTimeout  ReplicaLost  OutOfMemory
  PluginError            a plugin broke its contract      the session closes, 1011
  CodecError             bytes cannot be decoded          error event, the packet is skipped
  ConfigError            refuse to start                  exit code 2
```

This module must not know how an error is shown: status codes, close codes and public texts
live in one table in ``protocol.errors``.
"""

from __future__ import annotations

from collections.abc import Mapping


class DuologueError(Exception):
    """Base of all our errors.

    Args:
        message: For people; names the value and the limit. A client sees only a ``ClientError``'s.
        code: Stable machine-readable name, see ``protocol.errors.ErrorCode``.
        details: Further values by name, for logs.
    """

    default_code = "server_error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.details = dict(details or {})


class ClientError(DuologueError):
    """The peer broke a rule. Raised by protocol, sessions and gateway; answered with one error.

    Args:
        param: The offending field on the wire, as ``session.audio.input.format``.
        event_id: The client's id of the offending event, echoed in the answer.
    """

    default_code = "invalid_request"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        event_id: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, code=code, details=details)
        self.param = param
        self.event_id = event_id


class ProtocolError(ClientError):
    """A message is malformed, or not allowed now. The caller may correct it and send it again."""


class AuthError(ClientError):
    """No key, a wrong key or an expired secret. Raised before the upgrade."""

    default_code = "invalid_api_key"


class LimitExceeded(ClientError):
    """A size, count or rate is over its limit. Nothing was kept of what was offered."""

    default_code = "limit_exceeded"


class RateLimited(ClientError):
    """This peer asks for more than its share. It may try again after ``retry_after_s``."""

    default_code = "rate_limited"

    def __init__(self, message: str, *, retry_after_s: float, code: str | None = None) -> None:
        super().__init__(message, code=code, details={"retry_after_s": retry_after_s})
        self.retry_after_s = retry_after_s


class UnknownSession(ClientError):
    """No such session for this caller: it ended, or never was."""

    default_code = "session_not_found"


class StaleLease(ClientError):
    """The command carries a generation that is no longer the current one."""

    default_code = "stale_lease"


class CapacityError(DuologueError):
    """We are full. Raised at admission; the caller may try again after ``retry_after_s``."""

    default_code = "server_full"

    def __init__(self, message: str, *, retry_after_s: float, code: str | None = None) -> None:
        super().__init__(message, code=code, details={"retry_after_s": retry_after_s})
        self.retry_after_s = retry_after_s


class EngineError(DuologueError):
    """A stage failed. Raised by runners and executors; fails the response, keeps the session.

    Args:
        message: Our own words, which stand in logs.
        quote: What a library or a server said of it. It may repeat what people said, so it stands
            in logs only where these keep what is private.
    """

    default_code = "stage_failed"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: Mapping[str, object] | None = None,
        quote: str = "",
    ) -> None:
        super().__init__(message, code=code, details=details)
        self.quote = quote


class StageTimeout(EngineError):
    """A stage did not answer by its deadline."""

    default_code = "stage_timeout"


class ReplicaLost(EngineError):
    """The process that held the work died; it is restarted, the work is not."""

    default_code = "replica_lost"


class OutOfMemory(EngineError):
    """The device had no room for this request; others go on."""

    default_code = "out_of_memory"


class PluginError(DuologueError):
    """A plugin broke its contract. Raised by sessions; the session closes."""

    default_code = "plugin_error"


class CodecError(DuologueError):
    """Bytes cannot be decoded. The packet is skipped."""

    default_code = "undecodable_audio"


class ConfigError(DuologueError):
    """The configuration cannot be used. Refuse to start, and say what to change."""

    default_code = "invalid_config"
