"""Checks of a decoded command that types alone cannot express: sizes, and parts that fit together.

Ranges of settings are checked where a patch is merged. This module must not know the state of a
session: whether an id exists is for the session to say.
"""

from __future__ import annotations

from msgspec import UNSET

from duologue.protocol.commands import (
    CancelResponse,
    Command,
    CreateItem,
    CreateResponse,
    DeleteItem,
    ResponseParams,
    RetrieveItem,
    TruncateItem,
)
from duologue.protocol.config_checks import check_written
from duologue.protocol.duplex.commands import ShowFrame
from duologue.protocol.errors import over_limit, refused
from duologue.protocol.items import (
    ContentPart,
    FunctionCallItem,
    InputAudio,
    InputImage,
    InputText,
    Item,
    ItemReference,
    MessageItem,
    OutputAudio,
    OutputText,
    Role,
    as_shown,
    text_bytes,
    without_audio,
)
from duologue.protocol.limits import (
    MAX_APPEND_BYTES,
    MAX_CALL_ID_CHARS,
    MAX_CONTENT_PARTS,
    MAX_EVENT_ID_CHARS,
    MAX_ITEM_ID_CHARS,
    MAX_ITEM_TEXT_CHARS,
    MAX_METADATA_KEY_CHARS,
    MAX_METADATA_PAIRS,
    MAX_METADATA_VALUE_CHARS,
    MAX_RESPONSE_INPUT_ITEMS,
    MAX_TOOL_NAME_CHARS,
    MAX_WRITTEN_BYTES,
)

_PARTS_OF_ROLE: dict[Role, tuple[type[ContentPart], ...]] = {
    "system": (InputText,),
    "user": (InputText, InputAudio, InputImage),
    "assistant": (OutputText, OutputAudio),
}


_MOST_BYTES_OF_A_CHAR = 6
"""Of a control character in JSON."""


def check_command(command: Command) -> None:
    """Refuse what no session could carry out.

    Raises:
        ProtocolError: A value is not allowed; ``param`` names it.
        LimitExceeded: Something is too long or too many.
    """
    if command.event_id is not None:
        check_event_id(command.event_id)
    match command:
        case CreateItem(item=item, previous_item_id=previous):
            if previous is not None:
                _check_chars(previous, MAX_ITEM_ID_CHARS, "previous_item_id")
            check_item(item, "item")
        case TruncateItem(item_id=item_id, content_index=index, audio_end_ms=end_ms):
            _check_chars(item_id, MAX_ITEM_ID_CHARS, "item_id")
            _check_not_negative(index, "content_index")
            _check_not_negative(end_ms, "audio_end_ms")
        case RetrieveItem(item_id=item_id) | DeleteItem(item_id=item_id):
            _check_chars(item_id, MAX_ITEM_ID_CHARS, "item_id")
        case CreateResponse(response=ResponseParams() as params):
            _check_response(params)
        case ShowFrame(frame_id=str() as frame_id):
            _check_chars(frame_id, MAX_ITEM_ID_CHARS, "frame_id")
        case CancelResponse(response_id=str() as response_id):
            _check_chars(response_id, MAX_ITEM_ID_CHARS, "response_id")
        case _:
            pass


def check_event_id(event_id: str) -> None:
    """Refuse a name that is too long: it is kept, and repeated to the client.

    Raises:
        LimitExceeded: It is.
    """
    if len(event_id) > MAX_EVENT_ID_CHARS:
        raise over_limit("event_id", len(event_id), MAX_EVENT_ID_CHARS, "event_id", "characters")


def check_item(item: Item, param: str) -> None:
    """Refuse an item whose parts do not fit its role, or that is too large."""
    _check_chars(item.id, MAX_ITEM_ID_CHARS, f"{param}.id")
    if isinstance(item, MessageItem):
        if len(item.content) > MAX_CONTENT_PARTS:
            where = f"{param}.content"
            raise over_limit(where, len(item.content), MAX_CONTENT_PARTS, where, "parts")
        for index, part in enumerate(item.content):
            _check_part(part, item.role, f"{param}.content[{index}]")
        if text_bytes(item) > MAX_WRITTEN_BYTES // _MOST_BYTES_OF_A_CHAR:
            check_written(as_shown(without_audio(item)), param)
        return
    _check_chars(item.call_id, MAX_CALL_ID_CHARS, f"{param}.call_id")
    if isinstance(item, FunctionCallItem):
        _check_chars(item.name, MAX_TOOL_NAME_CHARS, f"{param}.name")
        _check_chars(item.arguments, MAX_ITEM_TEXT_CHARS, f"{param}.arguments")
        check_written(item.arguments, f"{param}.arguments")
    else:
        _check_chars(item.output, MAX_ITEM_TEXT_CHARS, f"{param}.output")
        check_written(item.output, f"{param}.output")


def _check_part(part: ContentPart, role: Role, param: str) -> None:
    if not isinstance(part, _PARTS_OF_ROLE[role]):
        given = part.__struct_config__.tag
        allowed = ", ".join(str(kind.__struct_config__.tag) for kind in _PARTS_OF_ROLE[role])
        raise refused(
            f"{param} is {given}, a message of role {role} holds {allowed}", f"{param}.type"
        )
    match part:
        case InputText(text=text) | OutputText(text=text):
            _check_chars(text, MAX_ITEM_TEXT_CHARS, f"{param}.text")
        case InputImage(image_url=url):
            if not url.startswith("data:image/"):
                raise refused(
                    f"{param}.image_url is no data:image/ URL; pictures are not fetched",
                    f"{param}.image_url",
                )
        case InputAudio(audio=bytes() as audio):
            if len(audio) > MAX_APPEND_BYTES:
                where = f"{param}.audio"
                raise over_limit(where, len(audio), MAX_APPEND_BYTES, where, "bytes")
        case _:
            pass


def _check_response(params: ResponseParams) -> None:
    if params.metadata is not UNSET:
        where = "response.metadata"
        if len(params.metadata) > MAX_METADATA_PAIRS:
            raise over_limit(where, len(params.metadata), MAX_METADATA_PAIRS, where, "pairs")
        for key, value in params.metadata.items():
            _check_chars(key, MAX_METADATA_KEY_CHARS, where)
            _check_chars(value, MAX_METADATA_VALUE_CHARS, where)
    if params.input is not UNSET:
        where = "response.input"
        if len(params.input) > MAX_RESPONSE_INPUT_ITEMS:
            raise over_limit(where, len(params.input), MAX_RESPONSE_INPUT_ITEMS, where, "items")
        for index, item in enumerate(params.input):
            if isinstance(item, ItemReference):
                _check_chars(item.id, MAX_ITEM_ID_CHARS, f"{where}[{index}].id")
            else:
                check_item(item, f"{where}[{index}]")


def _check_chars(text: str, limit: int, param: str) -> None:
    if len(text) > limit:
        raise over_limit(param, len(text), limit, param, "characters")


def _check_not_negative(value: int, param: str) -> None:
    if value < 0:
        raise refused(f"{param} is {value}, allowed is 0 or more", param)
