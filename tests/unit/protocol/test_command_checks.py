from __future__ import annotations

import pytest

from duologue.core.errors import ClientError, LimitExceeded
from duologue.protocol.command_checks import check_command, check_item
from duologue.protocol.commands import (
    CancelResponse,
    ClearAudio,
    Command,
    CreateItem,
    CreateResponse,
    DeleteItem,
    ResponseParams,
    RetrieveItem,
    TruncateItem,
)
from duologue.protocol.items import (
    ContentPart,
    FunctionCallItem,
    FunctionCallOutputItem,
    InputAudio,
    InputImage,
    InputText,
    Item,
    ItemReference,
    MessageItem,
    OutputAudio,
    OutputText,
    Role,
)
from duologue.protocol.limits import MAX_APPEND_BYTES, MAX_ITEM_TEXT_CHARS

TOO_LONG_ID = "i" * 129
TOO_LONG_TEXT = "t" * (MAX_ITEM_TEXT_CHARS + 1)


def says(role: Role, *content: ContentPart) -> CreateItem:
    return CreateItem(item=MessageItem(role=role, content=content))


def respond(**fields: object) -> CreateResponse:
    return CreateResponse(response=ResponseParams(**fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "command",
    [
        ClearAudio(event_id="e" * 512),
        says("system", InputText(text="x")),
        says(
            "user", InputText(text="x"), InputAudio(audio=b"1"), InputImage(image_url="data:image/")
        ),
        says("assistant", OutputText(text="x"), OutputAudio(transcript="x")),
        says("user"),
        CreateItem(item=FunctionCallItem(name="f"), previous_item_id="root"),
        CreateItem(item=FunctionCallOutputItem(call_id="call_1", output="")),
        TruncateItem(item_id="item_1", audio_end_ms=0),
        TruncateItem(item_id="item_1", audio_end_ms=10**12),
        CreateResponse(),
        CancelResponse(),
        respond(metadata={"k" * 64: "v" * 512}, input=(ItemReference(id="item_1"),)),
    ],
)
def test_what_a_session_could_carry_out_passes(command: Command) -> None:
    check_command(command)


@pytest.mark.parametrize(
    ("command", "param"),
    [
        (ClearAudio(event_id="e" * 513), "event_id"),
        (RetrieveItem(item_id=TOO_LONG_ID), "item_id"),
        (DeleteItem(item_id=TOO_LONG_ID), "item_id"),
        (TruncateItem(item_id=TOO_LONG_ID, audio_end_ms=1), "item_id"),
        (TruncateItem(item_id="i", audio_end_ms=-1), "audio_end_ms"),
        (TruncateItem(item_id="i", content_index=-1, audio_end_ms=1), "content_index"),
        (CancelResponse(response_id=TOO_LONG_ID), "response_id"),
        (CreateItem(item=MessageItem(id=TOO_LONG_ID, role="user")), "item.id"),
        (
            CreateItem(item=MessageItem(role="user"), previous_item_id=TOO_LONG_ID),
            "previous_item_id",
        ),
        (says("user", *[InputText(text="x")] * 129), "item.content"),
        (says("user", InputText(text="x"), OutputText(text="x")), "item.content[1].type"),
        (says("system", InputAudio()), "item.content[0].type"),
        (says("assistant", InputText(text="x")), "item.content[0].type"),
        (says("user", InputText(text=TOO_LONG_TEXT)), "item.content[0].text"),
        (says("user", InputImage(image_url="https://x/y.png")), "item.content[0].image_url"),
        (
            says("user", InputAudio(audio=bytes(MAX_APPEND_BYTES + 1))),
            "item.content[0].audio",
        ),
        (CreateItem(item=FunctionCallItem(name="f", call_id="c" * 129)), "item.call_id"),
        (CreateItem(item=FunctionCallItem(name="f", arguments=TOO_LONG_TEXT)), "item.arguments"),
        (
            CreateItem(item=FunctionCallOutputItem(call_id="c", output=TOO_LONG_TEXT)),
            "item.output",
        ),
        (respond(metadata={str(n): "v" for n in range(17)}), "response.metadata"),
        (respond(metadata={"k" * 65: "v"}), "response.metadata"),
        (respond(metadata={"k": "v" * 513}), "response.metadata"),
        (respond(input=(ItemReference(id="i"),) * 1025), "response.input"),
        (respond(input=(ItemReference(id=TOO_LONG_ID),)), "response.input[0].id"),
        (
            respond(input=(ItemReference(id="i"), FunctionCallItem(name="f", id=TOO_LONG_ID))),
            "response.input[1].id",
        ),
    ],
)
def test_what_no_session_could_carry_out_is_refused_by_its_name(
    command: Command, param: str
) -> None:
    with pytest.raises(ClientError) as caught:
        check_command(command)
    assert caught.value.param == param


def test_a_refusal_says_what_may_stand_there() -> None:
    with pytest.raises(ClientError, match="role system holds input_text"):
        check_item(MessageItem(role="system", content=(OutputText(text="x"),)), "item")


def test_a_limit_is_named_with_the_size_given() -> None:
    with pytest.raises(LimitExceeded, match="item_id: 129 characters, limit is 128 characters"):
        check_command(RetrieveItem(item_id=TOO_LONG_ID))


@pytest.mark.parametrize(
    ("item", "param"),
    [
        (
            MessageItem(
                role="user", content=tuple(InputText(text="t" * 200_000) for _ in range(4))
            ),
            "item",
        ),
        (MessageItem(role="user", content=(InputText(text="\x01" * 200_000),)), "item"),
        (MessageItem(role="user", content=(InputAudio(transcript="t" * 800_000),)), "item"),
        (FunctionCallItem(name="f", arguments="\x01" * 200_000), "item.arguments"),
        (FunctionCallOutputItem(call_id="c", output="\x01" * 200_000), "item.output"),
        (FunctionCallItem(name="f" * 65), "item.name"),
    ],
)
def test_an_item_must_fit_into_one_message_to_a_client(item: Item, param: str) -> None:
    with pytest.raises(LimitExceeded) as refusal:
        check_item(item, "item")
    assert refusal.value.param == param


def test_pictures_count_for_nothing_since_they_are_not_shown() -> None:
    picture = InputImage(image_url="data:image/png;base64," + "A" * 2_000_000)
    check_item(MessageItem(role="user", content=(picture, picture)), "item")
