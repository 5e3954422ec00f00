"""The duplex dialect in JSON.

As the Realtime dialect, with more messages, more names for them, and a ``server_event_seq`` on
every event. This module must not know sockets or sessions.
"""

from __future__ import annotations

import binascii
import functools
import operator
from typing import Any, get_args

import msgspec
import pybase64
from msgspec import UNSET, UnsetType

from duologue.core.errors import ClientError
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.command_checks import check_event_id
from duologue.protocol.commands import (
    Command,
    CommitAudio,
    CreateResponse,
    RealtimeCommand,
    UpdateSession,
)
from duologue.protocol.dialect import HEADS_KEPT, Dialect
from duologue.protocol.duplex.commands import AcknowledgeEvents, CommitTurn, DuplexCommand
from duologue.protocol.duplex.session_fields import SessionFields, UpdateFields
from duologue.protocol.duplex.wire_commands import (
    ALIASES,
    SIGNALLED,
    AppendHints,
    SignalFields,
    Translated,
    placed_audio,
)
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.events import Event
from duologue.protocol.flat_fields import FlatCreateResponse
from duologue.protocol.json_integers import Int64
from duologue.protocol.json_reading import (
    APPEND_HEAD,
    MAX_APPEND_BASE64_BYTES,
    WORTH_A_VIEW_BYTES,
    JsonForm,
    read_with_care,
    to_utf8,
)
from duologue.protocol.json_refusals import refusal
from duologue.protocol.response_events import (
    AudioDelta,
    FormattedAudioDelta,
    ResponseCreated,
    ResponseDone,
)

_BEFORE_SESSION = 0
"""Number of an event that comes before there is a session; it counts for no acknowledgement."""


class _AppendWire(AppendHints, frozen=True, kw_only=True, tag="input_audio_buffer.append"):
    audio: msgspec.Raw | UnsetType = UNSET
    delta: msgspec.Raw | UnsetType = UNSET

    def text(self) -> tuple[msgspec.Raw, str, int]:
        quotes = 8 if self.event_id is None else 12
        if self.start_sample is not None:
            quotes += 2
        if self.audio is not UNSET:
            return self.audio, "audio", quotes
        if self.delta is not UNSET:
            return self.delta, "delta", quotes
        raise refused("audio is required", "audio", ErrorCode.MISSING_PARAMETER)

    def command(self, audio: bytes) -> AppendAudio:
        return placed_audio(self, audio)


_REPLACED = (
    AppendAudio,
    AppendPlacedAudio,
    CommitAudio,
    CommitTurn,
    UpdateSession,
    CreateResponse,
)
_TRANSLATED = (*get_args(Translated), FlatCreateResponse)
_MEMBERS = (
    *(m for m in (*get_args(RealtimeCommand), *get_args(DuplexCommand)) if m not in _REPLACED),
    *_TRANSLATED,
    _AppendWire,
    UpdateFields,
)
_COMMANDS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    functools.reduce(operator.or_, _MEMBERS)
)
_HINTS = msgspec.json.Decoder(AppendHints)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SPACED_APPEND_HEAD = b'{"type": "input_audio_buffer.append", "audio": "'
"""With spaces, as JSON is written by many."""

_START_SAMPLE = b',"start_sample":'
_ACK_HEAD = b'{"type":"session.event_ack","server_event_seq":'
_NUMBERS = msgspec.json.Decoder(Int64)

_ENCODER = msgspec.json.Encoder()
_encode_base64 = pybase64.b64encode
_decode_base64 = pybase64.b64decode


def decode_duplex_command(message: bytes | str) -> Command:
    """Read one message from a client.

    Raises:
        ProtocolError: It is malformed. ``code`` is stable, ``param`` names the field and
            ``event_id`` is the client's own, where those can be told.
        LimitExceeded: Something in it is too large; same fields.
    """
    if isinstance(message, str):
        message = to_utf8(message)
    tidy: Command | None = None
    if message.startswith(APPEND_HEAD):
        tidy = _tidy_append(message, len(APPEND_HEAD))
    elif message.startswith(_ACK_HEAD):
        tidy = _tidy_ack(message)
    elif message.startswith(_SPACED_APPEND_HEAD):
        tidy = _tidy_append(message, len(_SPACED_APPEND_HEAD))
    if tidy is not None:
        return tidy
    return read_with_care(message, _FORM)


def encode_duplex_event(event: Event, seq: int) -> bytes:
    """Write one message to a client, with its number."""
    if type(event) is FormattedAudioDelta:
        head = _delta_head(event.response_id, event.item_id, event.format, event.sample_rate_hz)
        number = str(seq).encode()
        audio = _encode_base64(event.delta)
        return b"".join(
            (b'{"event_id":"event_', number, b'","server_event_seq":', number, head, audio, b'"}')
        )
    body = _ENCODER.encode(event)[1:]
    if isinstance(event, ResponseCreated | ResponseDone):
        body = b'"response_id":%b,%b' % (_ENCODER.encode(event.response.id), body)
    if seq == _BEFORE_SESSION:
        return b'{"event_id":"event_0",%b' % body
    return b'{"event_id":"event_%d","server_event_seq":%d,%b' % (seq, seq, body)


def _meaning(decoded: Any, message: bytes) -> Command:
    match decoded:
        case UpdateFields(session=session):
            return decoded.command(_flat_session(message) if session is UNSET else session)
        case SignalFields(event=event) if event in SIGNALLED:
            return decode_duplex_command(_ENCODER.encode(decoded.message()))
        case _ if isinstance(decoded, _TRANSLATED):
            command: Command = decoded.command()
            return command
        case _:
            realtime: Command = decoded
            return realtime


def _flat_session(message: bytes) -> SessionFields:
    """Read the settings of a message that is its own session; its type is not the session's."""
    try:
        # Names that nobody asked for are looked at only now: they may be no text at all.
        raw = msgspec.json.decode(message)
        del raw["type"]
        return msgspec.convert(raw, SessionFields)
    except msgspec.MsgspecError as exc:
        raise refusal(exc, message) from None


def _tidy_append(message: bytes, start: int) -> AppendAudio | None:
    """Read an append that begins with its audio, as nearly all do; None: read it with care."""
    end = message.find(b'"', start)
    if end < 0 or end - start > MAX_APPEND_BASE64_BYTES:
        return None
    rest = message[end + 1 :]
    try:
        text = message if end < WORTH_A_VIEW_BYTES else memoryview(message)
        audio = _decode_base64(text[start:end], None, True)
        if rest == b"}":
            return AppendAudio(audio=audio)
        if rest.startswith(_START_SAMPLE) and rest.count(b'"') == 2:
            start_sample = _NUMBERS.decode(rest[len(_START_SAMPLE) : -1])
            if start_sample >= 0 and rest.endswith(b"}"):
                return AppendPlacedAudio(audio=audio, start_sample=start_sample)
        said = b'{"type":"input_audio_buffer.append"' + rest
        fields, hints = _FIELDS.decode(said), _HINTS.decode(said)
        # As many keys as there are fields: none stands twice, and no object is inside another.
        if said.count(b'":') == len(fields) and "audio" not in fields and "delta" not in fields:
            if hints.event_id is not None:
                check_event_id(hints.event_id)
            return placed_audio(hints, audio)
    except (binascii.Error, msgspec.MsgspecError, RecursionError, ClientError):
        pass
    return None


def _tidy_ack(message: bytes) -> AcknowledgeEvents | None:
    """Read an acknowledgement that says nothing else, as nearly all do; None: read it with care."""
    try:
        if message.count(b'"') == 6 and message.endswith(b"}"):
            return AcknowledgeEvents(server_event_seq=_NUMBERS.decode(message[len(_ACK_HEAD) : -1]))
    except msgspec.MsgspecError:
        pass
    return None


def _renamed(message: bytes, alias: str | None) -> bytes | None:
    if alias is None or alias not in ALIASES:
        return None
    fields = msgspec.json.decode(message)
    if alias == "input.commit" and fields.get("create_response") is None:
        # This name has always meant that an answer is wanted.
        fields.setdefault("response_create", True)
    return _ENCODER.encode(fields | {"type": ALIASES[alias]})


_FORM = JsonForm(_COMMANDS, _AppendWire, _meaning, _renamed)


@functools.lru_cache(maxsize=HEADS_KEPT)
def _delta_head(response_id: str, item_id: str, format_name: str, sample_rate_hz: int) -> bytes:
    """All of an audio delta between its number and its base64; the same for each of a part."""
    empty = AudioDelta(
        response_id=response_id, item_id=item_id, output_index=0, content_index=0, delta=b""
    )
    declared = b',"format":%b,"sample_rate_hz":%d,' % (
        _ENCODER.encode(format_name),
        sample_rate_hz,
    )
    return declared + _ENCODER.encode(empty)[1:-2]


DUPLEX_JSON = Dialect("duplex", decode_duplex_command, encode_duplex_event)
"""The duplex dialect in JSON; asked for by ``autostart=0`` at its address."""
