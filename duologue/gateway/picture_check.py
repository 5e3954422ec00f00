"""Pictures that clients send into calls, held against a bound by their headers.

At the edge, where messages are read: large ones are read beside the loop, and a session, whose
recording may hold no content, never has to look into a picture. This module must not know whether
a model sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from duologue.codecs.picture_urls import check_picture_url
from duologue.codecs.pictures import check_picture
from duologue.core.errors import ClientError
from duologue.protocol.commands import Command, CreateItem, CreateResponse, ResponseParams
from duologue.protocol.dialect import Dialect
from duologue.protocol.duplex.commands import ShowFrame
from duologue.protocol.items import InputImage, ItemReference, MessageItem, ResponseInput

_MAY_SHOW = frozenset((CreateItem, CreateResponse, ShowFrame))


def with_picture_check(dialect: Dialect, max_pixels: int) -> Dialect:
    """Return a dialect that refuses what is no picture, or one of more pixels than allowed."""
    return replace(dialect, decode_command=_checked(dialect.decode_command, max_pixels))


def check_pictures(command: Command, max_pixels: int) -> None:
    """Look at the headers of the pictures in a command.

    Raises:
        ClientError: One is none that can be read; ``param`` names it.
        LimitExceeded: One has too many pixels.
    """
    match command:
        case ShowFrame(data=data):
            check_picture(data, max_pixels, "data")
        case CreateItem(item=item):
            _check_item(item, max_pixels, "item")
        case CreateResponse(response=ResponseParams(input=tuple() as items)):
            for index, each in enumerate(items):
                if not isinstance(each, ItemReference):
                    _check_item(each, max_pixels, f"response.input[{index}]")
        case _:
            pass


def _checked(decode: Callable[[bytes], Command], max_pixels: int) -> Callable[[bytes], Command]:
    def decode_checked(message: bytes) -> Command:
        command = decode(message)
        if type(command) in _MAY_SHOW:
            try:
                check_pictures(command, max_pixels)
            except ClientError as exc:
                exc.event_id = command.event_id
                raise
        return command

    return decode_checked


def _check_item(item: ResponseInput, max_pixels: int, param: str) -> None:
    if not isinstance(item, MessageItem):
        return
    for index, part in enumerate(item.content):
        if isinstance(part, InputImage):
            check_picture_url(part.image_url, max_pixels, f"{param}.content[{index}].image_url")
