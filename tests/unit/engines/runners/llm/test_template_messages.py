from __future__ import annotations

import pytest

from duologue.core.errors import EngineError
from duologue.engines.payloads import ChatMessage, ChatRequest, ToolCall
from duologue.engines.runners.llm.chat_chunk import chat_body
from duologue.engines.runners.llm.template_messages import pictures_of, template_messages
from tests.fakes.pictures import picture_url

SHOWN = ChatRequest(
    (
        ChatMessage("user", "Which?", images=(picture_url(50, "png"), picture_url(200, "png"))),
        ChatMessage("assistant", "", calls=(ToolCall("c", "look", '{"at": 2}'),)),
        ChatMessage("tool", "blue", call_id="c"),
        ChatMessage("user", "", images=(picture_url(90, "png"),)),
    ),
    max_tokens=10,
)


def test_a_picture_is_a_mark_and_arguments_are_an_object() -> None:
    body = chat_body(SHOWN)
    first, call, _, last = template_messages(body)
    assert first["content"] == [
        {"type": "text", "text": "Which?"},
        {"type": "image"},
        {"type": "image"},
    ]
    assert last["content"] == [{"type": "image"}]
    assert call["tool_calls"][0]["function"] == {"name": "look", "arguments": {"at": 2}}
    assert body == chat_body(SHOWN), "the body is as it was"


def test_pictures_come_in_the_order_of_their_marks() -> None:
    pixels = pictures_of(SHOWN, 3, 256)
    assert [(each.shape, each[0, 0, 0]) for each in pixels] == [
        ((16, 16, 3), 50),
        ((16, 16, 3), 200),
        ((16, 16, 3), 90),
    ]


@pytest.mark.parametrize(
    ("most", "max_pixels", "why"), [(2, 256, "3 pictures"), (0, 256, "reads 0"), (3, 255, "255")]
)
def test_too_many_and_too_large_ones_are_refused(most: int, max_pixels: int, why: str) -> None:
    with pytest.raises(EngineError, match=why) as refused:
        pictures_of(SHOWN, most, max_pixels)
    assert refused.value.code == "request_refused"


def test_what_is_no_picture_is_refused() -> None:
    broken = ChatRequest((ChatMessage("user", "", images=("data:image/png;base64,AAAA",)),), 10)
    with pytest.raises(EngineError):
        pictures_of(broken, 1, 256)
