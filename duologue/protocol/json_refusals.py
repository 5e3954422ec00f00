"""Why a message cannot be decoded: one error that names the field and echoes the client's id.

Only this module reads the text of msgspec's errors, because the path of the offending field stands
nowhere else. This module must not know the commands, and is off the hot path.
"""

from __future__ import annotations

import json
import re

import msgspec
from msgspec import UNSET, UnsetType

from duologue.core.errors import ProtocolError
from duologue.protocol.errors import SHOWN_CHARS, ErrorCode, refused, shown
from duologue.protocol.limits import MAX_EVENT_ID_CHARS

_DUPLICATES_SOUGHT_BYTES = 256 * 1024
"""Above this size the search would cost more than the last of two equal keys can harm."""

_WHERE = re.compile(r" - at `\$\.?(?P<path>[^`]*)`\Z")
_MISSING = re.compile(r"\AObject missing required field `(?P<field>[^`]*)`")
_UNKNOWN = re.compile(r"\AObject contains unknown field `(?P<field>[^`]*)`", re.DOTALL)

_MCP = re.compile(r"Invalid value 'mcp\w*'")


class _Head(msgspec.Struct):
    event_id: msgspec.Raw | UnsetType = UNSET
    type: msgspec.Raw | UnsetType = UNSET


_HEAD = msgspec.json.Decoder(_Head)
_TEXT = msgspec.json.Decoder(str)


def readable_event_id(message: bytes) -> str | None:
    """Return the client's id of a message that is refused, where it can be read and is sane."""
    try:
        raw = _HEAD.decode(message).event_id
        if raw is UNSET or len(bytes(raw)) > 6 * MAX_EVENT_ID_CHARS + 2:
            return None
        event_id = _TEXT.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return event_id if len(event_id) <= MAX_EVENT_ID_CHARS else None


def event_type(message: bytes) -> str | None:
    """Return the type of a message that could not be decoded further, where it can be read."""
    try:
        raw = _HEAD.decode(message).type
        return None if raw is UNSET else _TEXT.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def refusal(exc: Exception, message: bytes) -> ProtocolError:
    """Turn the decoder's error into the one that the client gets."""
    error = _translated(exc)
    error.event_id = readable_event_id(message)
    return error


def body_refusal(exc: Exception) -> ProtocolError:
    """Turn the decoder's error into the one about the body of a plain HTTP request."""
    return _named(exc, "the body")


def refuse_duplicate_keys(message: bytes) -> None:
    """Refuse a message in which an object has a key twice: two readers could disagree on it.

    Raises:
        ProtocolError: ``param`` is the key.
    """
    if len(message) > _DUPLICATES_SOUGHT_BYTES:
        return
    try:
        json.loads(
            message,
            object_pairs_hook=_refuse_duplicates,
            parse_int=_ignore,
            parse_float=_ignore,
            parse_constant=_ignore,
        )
    except RecursionError:
        raise _too_deep("the message") from None
    except ValueError:
        # In what the typed decoder skips, it lets bytes pass that are no text.
        raise refused("the message is not valid JSON", None, ErrorCode.INVALID_JSON) from None


def _translated(exc: Exception) -> ProtocolError:
    error = _named(exc, "the message")
    if error.param == "type" and error.code == ErrorCode.INVALID_VALUE:
        said = error.message.removeprefix("type: ")
        return refused(f"{said}: no such event type", "type", ErrorCode.UNKNOWN_EVENT)
    return error


def _named(exc: Exception, what: str) -> ProtocolError:
    if isinstance(exc, RecursionError):
        return _too_deep(what)
    text = str(exc)
    if not isinstance(exc, msgspec.ValidationError):
        return refused(f"{what} is not valid JSON: {text}", None, ErrorCode.INVALID_JSON)
    where = _WHERE.search(text)
    path = where["path"].replace("[...]", "[]") if where else ""
    said = _clipped(text[: where.start()] if where else text)
    if missing := _MISSING.match(said):
        param = _joined(path, missing["field"])
        return refused(f"{param} is required", param, ErrorCode.MISSING_PARAMETER)
    if unknown := _UNKNOWN.match(said):
        param = _joined(path, unknown["field"])
        return refused(f"there is no field {shown(param)}", param, ErrorCode.UNKNOWN_PARAMETER)
    if said.startswith("Invalid base64"):
        return refused(f"{path}: {said}", path, ErrorCode.INVALID_BASE64)
    if _MCP.fullmatch(said):
        return refused(
            f"{path}: MCP is not built in; call the MCP server in your client, and offer its tools "
            "here as functions",
            path,
            ErrorCode.UNSUPPORTED,
        )
    if not path:
        return refused(f"{what} is no such object: {said}", None, ErrorCode.INVALID_REQUEST)
    return refused(f"{path}: {said}", path)


def _clipped(text: str) -> str:
    return text if len(text) <= 2 * SHOWN_CHARS else f"{text[: 2 * SHOWN_CHARS]}..."


def _too_deep(what: str) -> ProtocolError:
    return refused(f"{what} is nested too deeply", None, ErrorCode.INVALID_JSON)


def _joined(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field


def _refuse_duplicates(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise refused(f"the key {shown(key)} stands twice in one object", key[:80])
        seen.add(key)


def _ignore(text: str) -> None:
    return None
