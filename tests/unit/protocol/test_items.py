from __future__ import annotations

import msgspec
import pytest

from duologue.protocol.items import (
    FunctionCallItem,
    InputAudio,
    InputImage,
    InputText,
    Item,
    MessageItem,
    OutputText,
    as_shown,
    without_audio,
)


def test_the_transcript_key_of_user_audio_is_always_there() -> None:
    assert msgspec.json.encode(InputAudio()) == b'{"type":"input_audio","transcript":null}'


def test_audio_is_taken_out_and_the_rest_stays() -> None:
    item = MessageItem(
        id="item_1",
        role="user",
        content=(InputText(text="see"), InputAudio(audio=b"\1\2", transcript="hear")),
    )
    bare = without_audio(item)
    assert isinstance(bare, MessageItem)
    assert bare.content == (InputText(text="see"), InputAudio(transcript="hear"))
    assert bare.id == "item_1"


@pytest.mark.parametrize(
    "item",
    [
        FunctionCallItem(id="item_1", name="f", call_id="call_1"),
        MessageItem(id="item_1", role="assistant", content=(OutputText(text="hi"),)),
        MessageItem(id="item_1", role="user", content=(InputAudio(),)),
    ],
)
def test_items_without_audio_stay_the_same_object(item: Item) -> None:
    assert without_audio(item) is item


def test_an_item_has_no_cancelled_status() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(
            b'{"type":"message","role":"assistant","status":"cancelled"}', type=MessageItem
        )


def test_pictures_are_shown_without_their_data() -> None:
    picture = InputImage(image_url="data:image/png;base64,AAAA", detail="low")
    item = MessageItem(id="i", role="user", content=(InputText(text="see"), picture))
    shown = as_shown(item)
    assert isinstance(shown, MessageItem)
    assert shown.content == (
        InputText(text="see"),
        InputImage(image_url="data:image/png;base64,", detail="low"),
    )
    odd = MessageItem(role="user", content=(InputImage(image_url="data:image/" + "x" * 999),))
    assert len(as_shown(odd).content[0].image_url) == 128  # type: ignore[union-attr]


def test_items_without_pictures_stay_the_same_object() -> None:
    for item in (FunctionCallItem(name="f"), MessageItem(role="user", content=(InputAudio(),))):
        assert as_shown(item) is item
