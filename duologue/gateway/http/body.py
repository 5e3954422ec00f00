"""Reads the bodies of requests, within limits, into typed messages.

Whatever is wrong with a body is said with the field that it is about. This module must not know
what the messages mean.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from aiohttp import (
    BodyPartReader,
    web,
)
from aiohttp.http import HttpProcessingError

from duologue.core.errors import LimitExceeded, ProtocolError
from duologue.gateway.beside_loop import read_beside_loop
from duologue.gateway.http.settings import HttpSettings
from duologue.protocol.errors import ErrorCode, refused, shown
from duologue.protocol.json_integers import is_wide, refuse_wide_integers, wide_integer
from duologue.protocol.json_refusals import body_refusal
from duologue.protocol.json_values import refuse_many_json_values

T = TypeVar("T")

_NO_JSON = ("application/x-www-form-urlencoded", "multipart/", "audio/", "image/", "video/")
_MALFORMED = (
    *(ValueError, AssertionError, LookupError, RuntimeError),
    HttpProcessingError,
    web.RequestPayloadError,
)
"""What aiohttp's reader raises for a form that is none."""

MAX_SMALL_BODY_BYTES = 256 * 1024
"""For routes of which any number of requests may be under way: they hold no place of those that
are worked on."""

_MAX_FIELDS = 64
_MAX_FIELD_BYTES = 256 * 1024


@dataclass(slots=True)
class FormFile:
    """A file of a form."""

    name: str
    content_type: str
    data: bytes


@dataclass(slots=True)
class Form:
    """A form: ``multipart/form-data``.

    Args:
        values: A name that comes twice, as ``names[]`` does, has several.
        files: By the name of their part.
        repeated: Names that several files have; the last one is kept.
    """

    values: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, FormFile] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)


async def read_json(
    request: web.Request, decoder: msgspec.json.Decoder[T], settings: HttpSettings
) -> T:
    """Return the message that a request carries.

    Raises:
        LimitExceeded: It is too large.
        ProtocolError: It is no such message, or did not come in time.
    """
    given = request.content_type
    if request.headers.get("Content-Type") and given.startswith(_NO_JSON):
        raise refused(
            f"the body is {given[:80]}, and this route reads JSON: send "
            "'Content-Type: application/json'",
            None,
            ErrorCode.UNSUPPORTED_MEDIA_TYPE,
        )
    raw = await read_body(request, settings)
    return await read_beside_loop(functools.partial(_decoded, decoder), raw)


def _decoded(decoder: msgspec.json.Decoder[T], raw: bytes) -> T:
    refuse_many_json_values(raw, "the body")
    refuse_wide_integers(raw, "the body")
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as exc:
        raise body_refusal(exc) from None


async def read_form(
    request: web.Request, settings: HttpSettings, max_bytes: int | None = None
) -> Form:
    """Return the form that a request carries.

    Args:
        max_bytes: A lower limit than that of the settings.

    Raises:
        LimitExceeded: It is too large.
        ProtocolError: It is no form, or did not come in time.
    """
    given = request.content_type
    if given != "multipart/form-data":
        raise refused(
            f"the body is {given[:80]}, and this route reads a form: send "
            "'Content-Type: multipart/form-data'",
            None,
            ErrorCode.UNSUPPORTED_MEDIA_TYPE,
        )
    limit = min(settings.max_body_bytes, max_bytes or settings.max_body_bytes)
    _check_announced(request, limit)
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            return await _read_parts(request, limit)
    except TimeoutError:
        raise _too_slow(settings) from None
    except _MALFORMED as exc:
        raise refused(
            "the form cannot be read: its parts or their headers are malformed",
            None,
            ErrorCode.INVALID_REQUEST,
        ) from exc


def form_message(form: Form, type_: type[T], lists: Mapping[str, str] | None = None) -> T:
    """Return the fields of a form as a typed message; numbers and booleans come as text.

    Args:
        lists: Names of fields that may come several times -> the message's name for the list.

    Raises:
        ProtocolError: A field has a value that is not allowed.
    """
    raw: dict[str, object] = {}
    for name, values in form.values.items():
        if lists is not None and name in lists:
            raw.setdefault(lists[name], []).extend(values)  # type: ignore[attr-defined]
        else:
            raw[name] = values[-1]
    try:
        message = msgspec.convert(raw, type_, strict=False)
    except (msgspec.ValidationError, ValueError, OverflowError) as exc:
        raise body_refusal(exc) from None
    for name in raw:
        value = getattr(message, name, None)
        if isinstance(value, int) and is_wide(value):
            raise wide_integer(value, name)
    return message


async def read_body(
    request: web.Request, settings: HttpSettings, max_bytes: int | None = None
) -> bytes:
    """Return the whole body.

    Args:
        max_bytes: A lower limit than that of the settings.

    Raises:
        ClientError: It is too large, comes too slowly or cannot be read.
    """
    limit = min(settings.max_body_bytes, max_bytes or settings.max_body_bytes)
    _check_announced(request, limit)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            while chunk := await request.content.readany():
                size += len(chunk)
                if size > limit:
                    raise _too_large(f"more than {limit}", limit)
                parts.append(chunk)
    except TimeoutError:
        raise _too_slow(settings) from None
    except web.RequestPayloadError:
        raise refused(
            "the body cannot be read: its encoding is broken", None, ErrorCode.INVALID_REQUEST
        ) from None
    return b"".join(parts)


async def _read_parts(request: web.Request, limit: int) -> Form:
    form = Form()
    reader = await request.multipart()
    size = fields = 0
    while (part := await reader.next()) is not None:
        fields += 1
        if fields > _MAX_FIELDS:
            raise LimitExceeded(f"a form may have {_MAX_FIELDS} fields", param=None)
        if not isinstance(part, BodyPartReader) or part.name is None:
            raise refused(
                "each part of a form needs a name in its Content-Disposition",
                None,
                ErrorCode.INVALID_REQUEST,
            )
        data = bytearray()
        most = limit - size if part.filename is not None else min(limit - size, _MAX_FIELD_BYTES)
        while chunk := await part.read_chunk(64 * 1024):
            data += chunk
            if len(data) > most:
                raise _too_large(f"its part {shown(part.name)} more than {most}", most)
        size += len(data)
        if part.filename is not None:
            kind = part.headers.get("Content-Type", "application/octet-stream")
            if part.name in form.files:
                form.repeated.add(part.name)
            form.files[part.name] = FormFile(part.filename, kind, bytes(data))
        else:
            form.values.setdefault(part.name, []).append(_text(part.name, data))
    return form


def _text(name: str, data: bytearray) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise refused(f"{shown(name)} is not text in UTF-8", name[:80]) from None


def _check_announced(request: web.Request, limit: int) -> None:
    announced = request.content_length
    if announced is not None and announced > limit:
        raise _too_large(str(announced), limit)


def _too_large(size: str, limit: int) -> LimitExceeded:
    return LimitExceeded(
        f"the body has {size} bytes, the limit is {limit}", code=ErrorCode.MESSAGE_TOO_LARGE
    )


def _too_slow(settings: HttpSettings) -> ProtocolError:
    return ProtocolError(
        f"the body did not come within {settings.body_timeout_s:g} s; send it again",
        code=ErrorCode.CLIENT_TOO_SLOW,
    )
