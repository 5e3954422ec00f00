from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from duologue.core.errors import ClientError
from duologue.gateway.picture_check import with_picture_check
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.duplex.commands import ShowFrame
from duologue.protocol.duplex.json_codec import DUPLEX_JSON
from tests.fakes.pictures import picture, picture_url

MAX_PIXELS = 256
CHECKED = with_picture_check(DUPLEX_JSON, MAX_PIXELS)
NO_PICTURE = "data:image/png;base64,AAAA"


def read(**message: Any) -> Any:
    return CHECKED.decode_command(msgspec.json.encode({"event_id": "e1", **message}))


def refusal(**message: Any) -> tuple[str, str | None, str | None]:
    with pytest.raises(ClientError) as refused:
        read(**message)
    return refused.value.code, refused.value.param, refused.value.event_id


def item(*urls: str) -> dict[str, Any]:
    content = [{"type": "input_image", "image_url": url} for url in urls]
    return {"type": "message", "role": "user", "content": content}


def test_what_holds_no_picture_is_read_as_ever() -> None:
    assert read(type="input_audio_buffer.append", audio="AAA=") == AppendAudio(
        audio=b"\x00\x00", event_id="e1"
    )
    assert read(type="response.create").event_id == "e1"
    call = {"type": "function_call_output", "call_id": "c", "output": "x"}
    assert read(type="conversation.item.create", item=call).item.output == "x"
    with pytest.raises(ClientError):
        read(type="nothing")


def test_pictures_within_the_bound_are_taken() -> None:
    made = read(type="conversation.item.create", item=item(picture_url(1), picture_url(2)))
    assert len(made.item.content) == 2
    asked = read(type="response.create", response={"input": [item(picture_url(1))]})
    assert len(asked.response.input) == 1
    frame = picture(3)
    data = base64.b64encode(frame).decode()
    assert read(type="video.frame", data=data, pts_ms=7) == ShowFrame(data=frame, event_id="e1")


def test_one_that_is_none_or_too_large_is_named() -> None:
    create, ask = "conversation.item.create", "response.create"
    bad, place = "undecodable_image", "content[1].image_url"
    pair = item(picture_url(1), NO_PICTURE)
    assert refusal(type=create, item=pair) == (bad, f"item.{place}", "e1")
    reference = {"type": "item_reference", "id": "item_1"}
    assert refusal(type=ask, response={"input": [reference, pair]}) == (
        bad,
        f"response.input[1].{place}",
        "e1",
    )
    assert refusal(type="video.frame", data="AAAA") == (bad, "data", "e1")
    wide = base64.b64encode(picture(1, "png", width=MAX_PIXELS + 1, height=1)).decode()
    assert refusal(type="video.frame", data=wide) == ("limit_exceeded", "data", "e1")
    large = item(f"data:image/png;base64,{wide}")
    assert refusal(type=create, item=large)[:2] == ("limit_exceeded", "item.content[0].image_url")
