"""What clients may rely on when something is refused or fails: one table for every transport.

An error becomes an HTTP status before the upgrade, an ``error`` event during a session and a close
code at its end; the three are rows of one table, so that they cannot disagree. This module must
not know who raises what, nor decide whether a session ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal, TypeAlias

from duologue.core.errors import (
    ClientError,
    DuologueError,
    EngineError,
    LimitExceeded,
    ProtocolError,
)
from duologue.protocol.events import ErrorBody, ErrorEvent
from duologue.protocol.limits import MAX_EVENT_ID_CHARS

ErrorType: TypeAlias = Literal[
    "invalid_request_error", "rate_limit_error", "server_error", "overloaded_error"
]

SHOWN_CHARS = 80
"""How much of a refused value an error message repeats."""


MAX_MESSAGE_CHARS = 1000
"""What was refused may be long, and stands in the message at times."""


class ErrorCode(StrEnum):
    """Stable names of what went wrong; clients match them, so none is ever renamed."""

    INVALID_REQUEST = "invalid_request"
    INVALID_JSON = "invalid_json"
    INVALID_MSGPACK = "invalid_msgpack"
    INVALID_VALUE = "invalid_value"
    INVALID_BASE64 = "invalid_base64"
    MISSING_PARAMETER = "missing_required_parameter"
    UNKNOWN_PARAMETER = "unknown_parameter"
    UNKNOWN_EVENT = "unknown_event_type"
    LIMIT_EXCEEDED = "limit_exceeded"
    MESSAGE_TOO_LARGE = "message_too_large"
    RATE_LIMITED = "rate_limited"
    TOO_MANY_SESSIONS = "too_many_sessions"
    UNSUPPORTED = "unsupported"
    UNDECODABLE_AUDIO = "undecodable_audio"
    UNDECODABLE_IMAGE = "undecodable_image"
    UNDECODABLE_VIDEO = "undecodable_video"
    JOB_NOT_FOUND = "video_not_found"
    JOB_NOT_READY = "video_not_ready"
    JOB_FAILED = "video_failed"
    OWNER_LOST = "owner_lost"
    IDEMPOTENCY_IN_PROGRESS = "idempotency_in_progress"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    NO_RECOGNISER = "no_recogniser"
    COMMIT_EMPTY = "input_audio_buffer_commit_empty"
    INPUT_BUFFER_FULL = "input_audio_buffer_full"
    RESPONSE_ACTIVE = "conversation_already_has_active_response"
    CANCEL_NOT_ACTIVE = "response_cancel_not_active"
    ITEM_DUPLICATE_ID = "item_create_duplicate_item_id"
    ITEM_UNKNOWN_PREVIOUS = "item_create_invalid_previous_item_id"
    ITEM_UNKNOWN_RETRIEVE = "item_retrieve_invalid_item_id"
    ITEM_UNKNOWN_TRUNCATE = "item_truncate_invalid_item_id"
    ITEM_UNKNOWN_DELETE = "item_delete_invalid_item_id"
    ITEM_UNKNOWN_REFERENCE = "item_reference_invalid_item_id"
    PLAYBACK_ITEM_NOT_FOUND = "playback_item_not_found"
    PLAYBACK_ITEM_MISMATCH = "playback_item_mismatch"
    INPUT_GAP = "input_audio_gap"
    UNSUPPORTED_AUDIO_FORMAT = "unsupported_audio_format"
    INVALID_EVENT_ACK = "invalid_event_ack"
    MODEL_UPDATE_UNSUPPORTED = "model_update_unsupported"
    CANNOT_UPDATE_VOICE = "cannot_update_voice"
    CANNOT_UPDATE_INSTRUCTIONS = "cannot_update_instructions"
    CANNOT_UPDATE_SEED = "cannot_update_seed"
    RESUME_UNSUPPORTED = "unsupported_session_resume"
    INVALID_RESUME = "invalid_session_resume"
    INVALID_RESUME_TOKEN = "invalid_resume_token"
    RESUME_EXPIRED = "session_resume_expired"
    RESUME_CONFLICT = "session_resume_conflict"
    CONFIG_TIMEOUT = "config_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    CONVERSATION_FULL = "conversation_full"
    TOOL_CALL_UNKNOWN = "tool_call_not_found"
    TOOL_CALL_ANSWERED = "tool_call_already_answered"
    TOOL_CALL_TIMED_OUT = "tool_call_timed_out"
    TOOL_CALL_MISSING = "tool_call_missing"
    TOOL_CALL_INVALID = "tool_call_invalid"
    INVALID_API_KEY = "invalid_api_key"
    CLIENT_SECRET_EXPIRED = "client_secret_expired"
    KEY_NOT_ALLOWED = "api_key_not_allowed"
    ORIGIN_NOT_ALLOWED = "origin_not_allowed"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    MODEL_NOT_FOUND = "model_not_found"
    SESSION_NOT_FOUND = "session_not_found"
    PEER_NOT_CONNECTED = "peer_not_connected"
    WEBRTC_UNAVAILABLE = "webrtc_unavailable"
    SESSION_EXPIRED = "session_expired"
    STALE_LEASE = "stale_lease"
    SESSION_QUEUED = "session_queued"
    SERVER_FULL = "server_full"
    STORAGE_FULL = "storage_full"
    NOT_READY = "server_not_ready"
    SHUTTING_DOWN = "server_shutting_down"
    CLIENT_TOO_SLOW = "client_too_slow"
    OUTPUT_OVERFLOW = "output_overflow"
    STAGE_FAILED = "stage_failed"
    STAGE_TIMEOUT = "stage_timeout"
    RESPONSE_INAUDIBLE = "response_inaudible"
    REPLICA_LOST = "replica_lost"
    HOST_LOST = "session_host_lost"
    OUT_OF_MEMORY = "out_of_memory"
    SLICE_TOO_LONG = "slice_too_long"
    STAGE_ASLEEP = "stage_asleep"
    STAGE_PAUSED = "stage_paused"
    STAGE_NOT_FOUND = "stage_not_found"
    STAGE_IN_TRANSITION = "stage_in_transition"
    SLEEP_UNSUPPORTED = "sleep_unsupported"
    PLUGIN_ERROR = "plugin_error"
    INVALID_CONFIG = "invalid_config"
    SERVER_ERROR = "server_error"


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """What one code means on each transport."""

    type: ErrorType
    http_status: int
    """Before the upgrade, and on plain HTTP endpoints."""

    close_code: int
    """Where the error ends the connection; most do not."""

    retryable: bool
    """Whether the same request may work later without a change."""

    public_text: str
    """What a client reads where the exception's own words are not for it."""


def _client(status: int, text: str, *, close_code: int = 1008, retry: bool = False) -> ErrorRow:
    return ErrorRow("invalid_request_error", status, close_code, retry, text)


def _server(status: int, text: str, *, close_code: int = 1011, retry: bool = True) -> ErrorRow:
    return ErrorRow("server_error", status, close_code, retry, text)


ERROR_TABLE: Mapping[ErrorCode, ErrorRow] = MappingProxyType(
    {
        ErrorCode.INVALID_REQUEST: _client(400, "The request cannot be carried out."),
        ErrorCode.INVALID_JSON: _client(400, "The message is not valid JSON."),
        ErrorCode.INVALID_MSGPACK: _client(400, "The message is not valid MessagePack."),
        ErrorCode.INVALID_VALUE: _client(400, "A field has a value that is not allowed."),
        ErrorCode.INVALID_BASE64: _client(400, "A field is not valid base64."),
        ErrorCode.MISSING_PARAMETER: _client(400, "A required field is missing."),
        ErrorCode.UNKNOWN_PARAMETER: _client(400, "A field is not known here."),
        ErrorCode.UNKNOWN_EVENT: _client(400, "The event type is not known."),
        ErrorCode.LIMIT_EXCEEDED: _client(413, "A size or count is over its limit."),
        ErrorCode.MESSAGE_TOO_LARGE: _client(
            413, "The message is larger than the limit.", close_code=1009
        ),
        ErrorCode.RATE_LIMITED: ErrorRow(
            "rate_limit_error", 429, 1008, True, "Too many requests; slow down."
        ),
        ErrorCode.TOO_MANY_SESSIONS: ErrorRow(
            "rate_limit_error", 429, 1013, True, "This key has too many sessions open."
        ),
        ErrorCode.UNSUPPORTED: _client(400, "This server or model cannot do that."),
        ErrorCode.UNDECODABLE_AUDIO: _client(400, "The audio cannot be decoded."),
        ErrorCode.UNDECODABLE_IMAGE: _client(400, "The image cannot be decoded."),
        ErrorCode.UNDECODABLE_VIDEO: _client(400, "The video cannot be decoded."),
        ErrorCode.JOB_NOT_FOUND: _client(404, "There is no such video."),
        ErrorCode.JOB_NOT_READY: _client(404, "The video is not finished yet.", retry=True),
        ErrorCode.JOB_FAILED: _client(422, "The video could not be made."),
        ErrorCode.OWNER_LOST: _server(500, "The server ended, again and again, while making this."),
        ErrorCode.IDEMPOTENCY_IN_PROGRESS: _client(
            409, "A request with this Idempotency-Key is being worked on.", retry=True
        ),
        ErrorCode.IDEMPOTENCY_KEY_REUSED: _client(
            400, "This Idempotency-Key belongs to another request."
        ),
        ErrorCode.NO_RECOGNISER: _server(
            501, "This server has no recogniser: speech is not transcribed.", retry=False
        ),
        ErrorCode.COMMIT_EMPTY: _client(400, "There is too little audio to commit."),
        ErrorCode.INPUT_BUFFER_FULL: _client(413, "The input audio buffer is full."),
        ErrorCode.RESPONSE_ACTIVE: _client(
            409, "The conversation already has an active response.", retry=True
        ),
        ErrorCode.CANCEL_NOT_ACTIVE: _client(409, "Cancellation failed: no active response."),
        ErrorCode.ITEM_DUPLICATE_ID: _client(409, "An item with this id exists already."),
        ErrorCode.ITEM_UNKNOWN_PREVIOUS: _client(404, "There is no item with this previous id."),
        ErrorCode.ITEM_UNKNOWN_RETRIEVE: _client(404, "There is no item with this id."),
        ErrorCode.ITEM_UNKNOWN_TRUNCATE: _client(404, "There is no such item to truncate."),
        ErrorCode.ITEM_UNKNOWN_DELETE: _client(404, "There is no such item to delete."),
        ErrorCode.ITEM_UNKNOWN_REFERENCE: _client(404, "There is no such item to refer to."),
        ErrorCode.PLAYBACK_ITEM_NOT_FOUND: _client(404, "There is no such spoken answer."),
        ErrorCode.PLAYBACK_ITEM_MISMATCH: _client(400, "The item is not that of the response."),
        ErrorCode.INPUT_GAP: _client(400, "Too much audio is missing before this append."),
        ErrorCode.UNSUPPORTED_AUDIO_FORMAT: _client(400, "The audio format cannot be used here."),
        ErrorCode.INVALID_EVENT_ACK: _client(400, "No event with this number has been sent."),
        ErrorCode.MODEL_UPDATE_UNSUPPORTED: _client(400, "The model of a session cannot change."),
        ErrorCode.CANNOT_UPDATE_VOICE: _client(
            400, "This model has spoken, and keeps its voice to the end of the session."
        ),
        ErrorCode.CANNOT_UPDATE_INSTRUCTIONS: _client(
            400, "This model has spoken, and stays who it is to the end of the session."
        ),
        ErrorCode.CANNOT_UPDATE_SEED: _client(
            400, "This model has spoken, and draws from the same seed to the end of the session."
        ),
        ErrorCode.RESUME_UNSUPPORTED: _client(409, "This session cannot be resumed."),
        ErrorCode.INVALID_RESUME: _client(400, "The request to resume is not complete."),
        ErrorCode.INVALID_RESUME_TOKEN: _client(403, "The resume token opens no such session."),
        ErrorCode.RESUME_EXPIRED: _client(
            410, "No connection came back to the session in time.", close_code=1001
        ),
        ErrorCode.RESUME_CONFLICT: _client(
            409, "The session was closed, or resumed by another connection.", close_code=4001
        ),
        ErrorCode.CONFIG_TIMEOUT: _client(408, "The first session.update did not come in time."),
        ErrorCode.IDLE_TIMEOUT: _client(
            408, "The client said nothing for too long.", close_code=1001
        ),
        ErrorCode.CONVERSATION_FULL: _client(409, "The conversation holds no more items."),
        ErrorCode.TOOL_CALL_UNKNOWN: _client(404, "There is no tool call with this id."),
        ErrorCode.TOOL_CALL_ANSWERED: _client(409, "This tool call has its result already."),
        ErrorCode.TOOL_CALL_TIMED_OUT: _client(408, "The result came after the time-out."),
        ErrorCode.TOOL_CALL_MISSING: _server(
            500, "The model called no function, though tool_choice requires it."
        ),
        ErrorCode.TOOL_CALL_INVALID: _server(
            500, "The model called a function that there is not, or with broken arguments."
        ),
        ErrorCode.INVALID_API_KEY: _client(401, "The API key is missing, wrong or expired."),
        ErrorCode.CLIENT_SECRET_EXPIRED: _client(401, "The client secret has expired."),
        ErrorCode.KEY_NOT_ALLOWED: _client(403, "This key may not do that."),
        ErrorCode.ORIGIN_NOT_ALLOWED: _client(403, "Pages of this origin may not connect."),
        ErrorCode.UNSUPPORTED_MEDIA_TYPE: _client(
            415, "The body is of another type than is read here."
        ),
        ErrorCode.CONTEXT_LENGTH_EXCEEDED: _client(
            400, "The messages are longer than what the model can read."
        ),
        ErrorCode.MODEL_NOT_FOUND: _client(404, "There is no such model."),
        ErrorCode.SESSION_NOT_FOUND: _client(404, "There is no such session."),
        ErrorCode.PEER_NOT_CONNECTED: _client(
            408, "The WebRTC connection was not made in time.", retry=True
        ),
        ErrorCode.WEBRTC_UNAVAILABLE: _server(
            501,
            "This server takes no calls over WebRTC: it was installed without the extra 'webrtc'. "
            "Calls over WebSocket work.",
            retry=False,
        ),
        ErrorCode.SESSION_EXPIRED: _client(
            410, "Your session hit its maximum duration.", close_code=1001
        ),
        ErrorCode.STALE_LEASE: _client(
            409, "Another connection has taken the session over.", close_code=4001
        ),
        ErrorCode.SESSION_QUEUED: _client(409, "The call waits for a place.", retry=True),
        ErrorCode.SERVER_FULL: ErrorRow(
            "overloaded_error", 503, 1013, True, "The server is full; try again later."
        ),
        ErrorCode.STORAGE_FULL: ErrorRow(
            "overloaded_error", 503, 1013, True, "The server has no room on its disk; try later."
        ),
        ErrorCode.NOT_READY: ErrorRow(
            "overloaded_error", 503, 1013, True, "The server is still starting."
        ),
        ErrorCode.SHUTTING_DOWN: _server(503, "The server is shutting down.", close_code=1001),
        ErrorCode.CLIENT_TOO_SLOW: _client(
            408, "The client took no data for too long.", close_code=1013, retry=True
        ),
        ErrorCode.OUTPUT_OVERFLOW: _client(
            400, "The answer was given up: the client reads too slowly.", retry=True
        ),
        ErrorCode.STAGE_FAILED: _server(
            500, "A model failed while answering; the server's log says why."
        ),
        ErrorCode.STAGE_TIMEOUT: _server(504, "A model did not answer in time."),
        ErrorCode.RESPONSE_INAUDIBLE: _server(
            504, "The answer was written, but no speech of it came in time."
        ),
        ErrorCode.REPLICA_LOST: _server(503, "A model was restarted while answering."),
        ErrorCode.HOST_LOST: _server(
            503, "The process that held the session is gone; open a new one.", close_code=1012
        ),
        ErrorCode.OUT_OF_MEMORY: _server(503, "A model had no memory left for this request."),
        ErrorCode.SLICE_TOO_LONG: _server(
            500, "This server cannot make that beside calls.", retry=False
        ),
        ErrorCode.STAGE_ASLEEP: ErrorRow(
            "overloaded_error", 503, 1013, True, "A model that this needs is asleep."
        ),
        ErrorCode.STAGE_PAUSED: ErrorRow(
            "overloaded_error", 503, 1013, True, "A model that this needs is paused."
        ),
        ErrorCode.STAGE_NOT_FOUND: _client(404, "There is no such stage."),
        ErrorCode.STAGE_IN_TRANSITION: _client(
            409, "The stage is on its way to sleep, or waking.", retry=True
        ),
        ErrorCode.SLEEP_UNSUPPORTED: _server(501, "This model cannot sleep.", retry=False),
        ErrorCode.PLUGIN_ERROR: _server(500, "The session failed.", retry=False),
        ErrorCode.INVALID_CONFIG: _server(500, "The server is misconfigured.", retry=False),
        ErrorCode.SERVER_ERROR: _server(500, "The server had an internal error."),
    }
)


def error_code(exc: BaseException) -> ErrorCode:
    """Return the code that stands for an exception, ``SERVER_ERROR`` for one that is not ours."""
    if not isinstance(exc, DuologueError):
        return ErrorCode.SERVER_ERROR
    try:
        return ErrorCode(exc.code)
    except ValueError:
        if isinstance(exc, EngineError):
            return ErrorCode.STAGE_FAILED  # runners have codes of their own, for logs
        fault_is_theirs = isinstance(exc, ClientError)
        return ErrorCode.INVALID_REQUEST if fault_is_theirs else ErrorCode.SERVER_ERROR


def error_body(exc: BaseException, event_id: str | None = None) -> ErrorBody:
    """Return what a client is told of an exception.

    Only a ``ClientError`` is shown in its own words, since they are about the client's own
    request; all others get the public text of their code.

    Args:
        exc: What was raised.
        event_id: The client's id of the event that was being handled, if the exception has none.
    """
    code = error_code(exc)
    row = ERROR_TABLE[code]
    if not isinstance(exc, ClientError):
        return ErrorBody(
            type=row.type, code=code, message=row.public_text, event_id=_sane(event_id)
        )
    return ErrorBody(
        type=row.type,
        code=code,
        message=(exc.message or row.public_text)[:MAX_MESSAGE_CHARS],
        param=exc.param,
        event_id=_sane(exc.event_id or event_id),
    )


def error_event(exc: BaseException, event_id: str | None = None) -> ErrorEvent:
    """Return the ``error`` event for an exception, see ``error_body``."""
    return ErrorEvent(error=error_body(exc, event_id))


def refused(
    message: str, param: str | None, code: ErrorCode = ErrorCode.INVALID_VALUE
) -> ProtocolError:
    """Return the error for a field that is not allowed."""
    return ProtocolError(message, code=code, param=param)


def over_limit(what: str, size: float, limit: float, param: str, unit: str = "") -> LimitExceeded:
    """Return the error for a size, length or count over its limit."""
    suffix = f" {unit}" if unit else ""
    return LimitExceeded(
        f"{what}: {size}{suffix}, limit is {limit}{suffix}",
        code=ErrorCode.LIMIT_EXCEEDED,
        param=param,
    )


def shown(value: object) -> str:
    """Return a client's value for an error message, shortened."""
    text = repr(value[: SHOWN_CHARS + 1] if isinstance(value, str) else value)
    return text if len(text) <= SHOWN_CHARS + 2 else f"{text[:SHOWN_CHARS]}..."


def _sane(event_id: str | None) -> str | None:
    return event_id if event_id is not None and len(event_id) <= MAX_EVENT_ID_CHARS else None
