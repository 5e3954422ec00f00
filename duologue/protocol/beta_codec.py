"""The beta dialect: Realtime in JSON, with the names and the flat objects it had before GA.

What is read is what GA connections read too (``flat_fields``); what is written differs. A spoken
answer has the modalities text and audio, items are announced once, as created, and events that came
with GA are left out. This module must not know sockets or sessions.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec
import pybase64
from msgspec import UNSET, UnsetType

from duologue.core.errors import ProtocolError
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.beta_objects import beta_item, beta_response, beta_session
from duologue.protocol.commands import Command, CreateItem, CreateResponse, UpdateSession
from duologue.protocol.dialect import HEADS_KEPT, Dialect
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.events import (
    STOCK_EVENTS,
    ErrorBody,
    ErrorEvent,
    Event,
    IdleTimeoutTriggered,
    ItemAdded,
    ItemDone,
    ItemRetrieved,
    SessionCreated,
    SessionUpdated,
)
from duologue.protocol.items import InputImage, MessageItem, ResponseInput
from duologue.protocol.json_codec import audio_delta_head, decode_command
from duologue.protocol.response_events import (
    AudioDelta,
    AudioDone,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseCreated,
    ResponseDone,
    TextDone,
)
from duologue.protocol.session_config import TranscriptionResource

_RATE_HZ = 24000
"""Of PCM, always."""

_NAMES: Mapping[type, bytes] = {
    AudioDone: b"response.audio.done",
    AudioTranscriptDelta: b"response.audio_transcript.delta",
    AudioTranscriptDone: b"response.audio_transcript.done",
    OutputTextDelta: b"response.text.delta",
    TextDone: b"response.text.done",
    ItemAdded: b"conversation.item.created",
}
_WRITTEN = STOCK_EVENTS - {ItemDone, IdleTimeoutTriggered}

_FLAT_PARAMS: Mapping[str, str] = {
    "session.audio.input.format": "session.input_audio_format",
    "session.audio.input.transcription": "session.input_audio_transcription",
    "session.audio.input.noise_reduction": "session.input_audio_noise_reduction",
    "session.audio.input.turn_detection": "session.turn_detection",
    "session.audio.output.format": "session.output_audio_format",
    "session.audio.output.voice": "session.voice",
    "session.audio.output.speed": "session.speed",
    "session.output_modalities": "session.modalities",
    "session.max_output_tokens": "session.max_response_output_tokens",
    "response.audio.output.format": "response.output_audio_format",
    "response.audio.output.voice": "response.voice",
    "response.output_modalities": "response.modalities",
    "response.max_output_tokens": "response.max_response_output_tokens",
}

_ENCODER = msgspec.json.Encoder()
_encode_base64 = pybase64.b64encode


def decode_beta_command(message: bytes | str) -> Command:
    """Read one message from a client.

    Raises:
        ProtocolError: It is malformed, or asks for what this dialect cannot say.
        LimitExceeded: Something in it is too large.
    """
    command = decode_command(message)
    if type(command) in _CHECKED:
        try:
            _check(command)
        except ProtocolError as exc:
            exc.event_id = command.event_id
            raise
    return command


def encode_beta_event(event: Event, seq: int) -> bytes | None:
    """Write one message to a client, with its number as ``event_id``; None: there is no such."""
    if type(event) is AudioDelta:
        head = _audio_delta_head(
            event.response_id, event.item_id, event.output_index, event.content_index
        )
        number = str(seq).encode()
        audio = _encode_base64(event.delta)
        return b"".join((b'{"event_id":"event_', number, b'",', head, audio, b'"}'))
    if type(event) not in _WRITTEN:
        return None
    body = _ENCODER.encode(_flattened(event))
    name = _NAMES.get(type(event))
    if name is None and isinstance(event, SessionUpdated) and _only_listens(event):
        name = b"transcription_session.updated"
    if name is not None:
        # The name stands first.
        body = b'{"type":"%b"%b' % (name, body[body.index(b'"', len(b'{"type":"')) + 1 :])
    return b'{"event_id":"event_%d",%b' % (seq, body[1:])


def _only_listens(event: SessionUpdated) -> bool:
    """Such a session had an event of its own."""
    return isinstance(event.session, TranscriptionResource)


_CHECKED = frozenset((UpdateSession, CreateItem, CreateResponse))


def _check(command: Command) -> None:
    match command:
        case UpdateSession(session=patch):
            audio = patch.audio or None
            inp, out = (audio.input, audio.output) if audio else (None, None)
            _check_format(inp.format if inp else None, "session.audio.input.format")
            _check_format(out.format if out else None, "session.audio.output.format")
        case CreateItem(item=item):
            _check_pictures(item, "item")
        case CreateResponse(response=params) if params:
            for index, given in enumerate(params.input or ()):
                _check_pictures(given, f"response.input[{index}]")
            override = params.audio.output if params.audio else None
            _check_format(override.format if override else None, "response.audio.output.format")
        case _:
            pass


def _check_format(patch: FormatPatch | UnsetType | None, param: str) -> None:
    if not patch or patch.type in ("audio/pcmu", "audio/pcma"):
        return
    if patch.type not in ("audio/pcm", UNSET):
        raise refused(f"the beta dialect does not know {patch.type}", f"{param}.type")
    if patch.rate is not UNSET and patch.rate not in (None, _RATE_HZ):
        raise refused(
            f"{param}.rate is {patch.rate}, the beta dialect has {_RATE_HZ} only", f"{param}.rate"
        )


def _check_pictures(item: ResponseInput, param: str) -> None:
    for index, part in enumerate(item.content if isinstance(item, MessageItem) else ()):
        if isinstance(part, InputImage):
            raise refused(
                "the beta dialect has no pictures: connect without 'OpenAI-Beta: realtime=v1'",
                f"{param}.content[{index}].type",
                ErrorCode.UNSUPPORTED,
            )


def _flattened(event: Event) -> Any:
    match event:
        case SessionCreated() | SessionUpdated():
            return _with(event, session=beta_session(event.session))
        case ItemAdded() | ItemRetrieved() | OutputItemAdded() | OutputItemDone():
            return _with(event, item=beta_item(event.item))
        case ResponseCreated() | ResponseDone():
            return _with(event, response=beta_response(event.response))
        case ErrorEvent(error=error):
            return ErrorEvent(error=_renamed(error))
        case _:
            return event


def _with(event: Event, **changes: msgspec.Struct) -> Any:
    """Return what is only ever encoded: in this dialect the fields have other types."""
    return msgspec.structs.replace(event, **changes)


def _renamed(error: ErrorBody) -> ErrorBody:
    """A setting is called what this dialect calls it, wherever it was refused."""
    for nested, flat in _FLAT_PARAMS.items():
        if error.param is not None and (error.param + ".").startswith(nested + "."):
            return msgspec.structs.replace(
                error,
                param=flat + error.param[len(nested) :],
                message=error.message.replace(nested, flat),
            )
    return error


@functools.lru_cache(maxsize=HEADS_KEPT)
def _audio_delta_head(
    response_id: str, item_id: str, output_index: int, content_index: int
) -> bytes:
    head = audio_delta_head(response_id, item_id, output_index, content_index)
    return head.replace(b"response.output_audio.delta", b"response.audio.delta", 1)


BETA_JSON = Dialect("beta", decode_beta_command, encode_beta_event)
"""The Realtime dialect before GA, in JSON; asked for by header or subprotocol."""
